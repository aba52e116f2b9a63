/** Why a queue has no workflows on Citus. */
export const WORKFLOWS_ON_CITUS =
  'The queue has workflows, and Citus refuses the statements that receive their signals and end their ' +
  'batches';

/** What to do about it. */
export const WITHOUT_WORKFLOWS =
  'Give createQueue no workflows, or keep the tables of this queue in PostgreSQL without Citus';
