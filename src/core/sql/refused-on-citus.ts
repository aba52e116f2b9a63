import { QueueError } from '../../errors.ts';
import { causesOf } from './causes-of.ts';
import { sqlStateOf } from './executor.ts';

const CHECK_VIOLATION = '23514';
/** The migration for Citus in docs/scaling.md adds it, so an enqueue elsewhere asks nothing. */
const CONSTRAINT = 'no_groups_or_batches_on_citus';

/** What to say where Citus has no groups and batches; `undefined`: the error has another cause. */
export function refusedOnCitus(error: unknown): QueueError | undefined {
  if (sqlStateOf(error) !== CHECK_VIOLATION) return undefined;
  // Not Drizzle's error around it, which repeats the parameters and so the payload.
  const cause = causesOf(error).at(-1);
  if (!cause?.message.includes(CONSTRAINT)) return undefined;
  return new QueueError(
    'Citus refuses the statements that claim from groups and end batches, so a job in a group or a ' +
      'batch would wait forever there. Leave groups out of the limits of this queue and enqueue no ' +
      'batches, or keep its tables in PostgreSQL without Citus',
    { cause },
  );
}
