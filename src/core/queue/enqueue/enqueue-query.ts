import type { Query } from 'drizzle-orm';
import type { QueryBuilders } from '../../../skip-locked/query-builders.ts';
import type { JobDefinition, PayloadInput } from '../../job/definition.ts';
import type { PlainEnqueueOptions } from '../../job/enqueue-options.ts';
import { mayBeDue, newJob } from '../../job/new-job.ts';
import { insertOneJobQuery } from '../../queries/enqueue/insert-one-job.ts';
import { inGroup } from '../../sql/grouped-jobs.ts';
import { withOwn } from '../../sql/own-values.ts';
import { type EnqueueSettings, makeAround } from './enqueue-around.ts';

/** What became of an enqueue that was part of a batch. */
export type BatchEnqueueResult =
  | { readonly id: number; readonly duplicate: false }
  /** The id of the live job that stands in its way; `null` when that was enqueued in the very same moment. */
  | { readonly id: number | null; readonly duplicate: true };

/** An enqueue as a Drizzle query, for `db.batch([…])`; `await` sends it alone. It returns one row. */
export interface EnqueueQuery extends PromiseLike<[BatchEnqueueResult]> {
  /** What Drizzle knows its queries by. */
  readonly _: { readonly dialect: 'pg'; readonly result: [BatchEnqueueResult] };
  toSQL(): Query;
}

/**
 * The query for one job, all of it checked.
 *
 * @throws InvalidPayloadError | RangeError | TypeError
 */
export function enqueueQuery<TJob extends JobDefinition>(
  db: QueryBuilders,
  settings: EnqueueSettings,
  job: TJob,
  payload: PayloadInput<TJob>,
  options: PlainEnqueueOptions | undefined,
): EnqueueQuery {
  const { tables, own, wakeUps, maxPayloadBytes } = settings;
  const made = newJob(job, payload, options, maxPayloadBytes, own);
  if ('then' in made) {
    // It may not be awaited, and an unhandled rejection would end the process.
    made.then(undefined, () => undefined);
    throw new TypeError(
      `enqueueQuery('${job.kind}'): the payload's schema is asynchronous, but a query is returned at once: ` +
        'use enqueue',
    );
  }
  if (made.rule !== undefined) {
    throw new TypeError(
      `enqueueQuery('${job.kind}'): a query for a batch takes a plain uniqueKey, and no debounce, ` +
        'throttle, replace or unique: use enqueue',
    );
  }
  return makeAround(settings, inGroup(tables, withOwn(own, made, options)), payload, (job) => {
    const wakeUp = mayBeDue(job) ? wakeUps?.draw(job.queue) : undefined;
    // Always one row, in one of the two forms of the type.
    return insertOneJobQuery(db, tables, job, wakeUp) as unknown as EnqueueQuery;
  });
}
