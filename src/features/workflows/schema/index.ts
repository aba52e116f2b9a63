/**
 * The tables of workflows, for the app's own Drizzle schema: `export * from
 * 'drizzle-queue/schema/workflows'`. This entry loads nothing but drizzle-orm.
 */
import { createWorkflowTables, type WorkflowTables } from './create-workflow-tables.ts';

const tables: WorkflowTables<'queue_', undefined> = createWorkflowTables();

/** `queue_steps`: what jobs have done in their middle, and what they wait for. */
export const queueSteps: WorkflowTables<'queue_', undefined>['queueSteps'] = tables.queueSteps;
/** `queue_mailboxes`: the signals that were sent to jobs. */
export const queueMailboxes: WorkflowTables<'queue_', undefined>['queueMailboxes'] = tables.queueMailboxes;
/** `queue_batches`: counted sets of jobs, for whose end others wait. */
export const queueBatches: WorkflowTables<'queue_', undefined>['queueBatches'] = tables.queueBatches;
/** `queue_waits`: which jobs wait for which batches. */
export const queueWaits: WorkflowTables<'queue_', undefined>['queueWaits'] = tables.queueWaits;
/** `queue_tallies`: ends of jobs that are not counted yet. */
export const queueTallies: WorkflowTables<'queue_', undefined>['queueTallies'] = tables.queueTallies;

export type { BatchColumns, BatchesTable } from '../../batches/schema/queue-batches.ts';
export type { TalliesTable, TallyColumns } from '../../batches/schema/queue-tallies.ts';
export type { WaitColumns, WaitPolicy, WaitsTable } from '../../batches/schema/queue-waits.ts';
export { createWorkflowTables, type WorkflowTables } from './create-workflow-tables.ts';
export type { MailboxColumns, MailboxesTable, SentSignal } from './queue-mailboxes.ts';
export type { StepColumns, StepErrorRecord, StepKind, StepsTable } from './queue-steps.ts';
