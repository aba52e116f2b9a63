import type { Query } from 'drizzle-orm';
import type { JobDefinition, PayloadInput } from '../job/definition.ts';
import { type EnqueueOptions, mayBeDue, newJob } from '../job/new-job.ts';
import { insertOneJobQuery } from '../queries/insert-one-job.ts';
import type { QueueTables } from '../schema/index.ts';
import type { OwnColumn } from '../schema/own-columns.ts';
import type { QueryBuilders } from '../skip-locked/query-builders.ts';
import { withOwn } from '../sql/own-values.ts';
import type { WakeUps } from './wake-ups.ts';

/** What became of an enqueue that was part of a batch. */
export type BatchEnqueued =
  | { readonly id: number; readonly duplicate: false }
  /** The id of the live job that stands in its way; `null` when that was enqueued in the very same moment. */
  | { readonly id: number | null; readonly duplicate: true };

/**
 * An enqueue that has not been sent: a Drizzle query, for `db.batch([…])`. `await` sends it alone. It answers one row.
 */
export interface EnqueueQuery extends PromiseLike<[BatchEnqueued]> {
  /** What Drizzle knows its queries by. */
  readonly _: { readonly dialect: 'pg'; readonly result: [BatchEnqueued] };
  toSQL(): Query;
}

/**
 * The query for one job, all of it checked.
 *
 * @throws InvalidPayloadError | RangeError | TypeError
 */
export function enqueueQuery<TJob extends JobDefinition>(
  db: QueryBuilders,
  tables: QueueTables,
  job: TJob,
  payload: PayloadInput<TJob>,
  options: EnqueueOptions | undefined,
  {
    own,
    wakeUps,
    maxPayloadBytes,
  }: {
    readonly own: readonly OwnColumn[];
    readonly wakeUps: WakeUps | undefined;
    readonly maxPayloadBytes: number;
  },
): EnqueueQuery {
  const made = newJob(job, payload, options, maxPayloadBytes);
  if ('then' in made) {
    // Its refusal would be nobody's.
    made.then(undefined, () => undefined);
    throw new TypeError(
      `enqueueQuery('${job.kind}'): the payload's schema is asynchronous, and a query must be there at once; use enqueue, or a schema without async checks`,
    );
  }
  const wakeUp = mayBeDue(made) ? wakeUps?.draw(made.queue) : undefined;
  // One row, whatever happens; and the two ways in which it can end are those of the type.
  return insertOneJobQuery(db, tables, withOwn(own, made, options), wakeUp) as unknown as EnqueueQuery;
}
