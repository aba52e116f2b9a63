import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../../job/describe-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { endAsCancelled } from '../../sql/end-as-cancelled.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { type LiveFilter, liveAndFits } from '../../sql/live-filter.ts';

/** A part of one queue's jobs, by id: above `after`, up to `until`, at most `limit`. */
export interface JobsSlice {
  readonly queue: string;
  readonly filter: LiveFilter;
  readonly after: number;
  readonly until: number;
  readonly limit: number;
}

export interface JobsCancel extends JobsSlice {
  readonly reason: Omit<ErrorRecord, 'attempt'>;
  /** Also those that a worker holds, which is told on `channel`. */
  readonly force?: { readonly channel: string | undefined } | undefined;
}

/**
 * Moves unheld jobs, or with `force` any jobs, to the results as `cancelled`. Returns their ids.
 *
 * **Under concurrency.** As with `cancelJob`: a locked row is left alone. A job that no longer matches the
 * filter stays as it is, for example because it was claimed meanwhile.
 */
export async function cancelJobs(db: Executor, tables: QueueTables, cancel: JobsCancel): Promise<number[]> {
  const rows = await queryRows(db, tables, cancelJobsQuery(tables, cancel));
  return rows.map((row) => Number(row.job_id));
}

/** @endsHold `queue.cancelMany` with `force` */
export function cancelJobsQuery(tables: QueueTables, { reason, force, ...slice }: JobsCancel): SQL {
  const nobodys = force === undefined ? sql` and j.worker_id is null` : sql``;
  const free = sql`
    with free as materialized (${lockedSlice(tables, slice, nobodys)}
    )`;
  return endAsCancelled(tables, { queue: slice.queue, free, reason, channel: force?.channel });
}

export interface JobsCancelRequest extends JobsSlice {
  readonly reason: string;
}

/**
 * Requests the end of held jobs whose end has not been requested yet. Returns their ids. Their workers find
 * the request by polling, or the caller notifies them.
 *
 * **Under concurrency.** As with `requestCancel`: a locked row is left alone.
 */
export async function requestCancels(
  db: Executor,
  tables: QueueTables,
  request: JobsCancelRequest,
): Promise<number[]> {
  const rows = await queryRows(db, tables, requestCancelsQuery(tables, request));
  return rows.map(({ id }) => Number(id));
}

export function requestCancelsQuery(tables: QueueTables, { reason, ...slice }: JobsCancelRequest): SQL {
  const held = sql` and j.worker_id is not null and j.cancel_reason is null`;
  return sql`
    with held as materialized (${lockedSlice(tables, slice, held)}
    )
    update ${tables.queueJobs} as j set cancel_reason = ${reason}::text
    where j.queue = ${slice.queue} and j.id = any(array(select id from held))
    returning j.id`;
}

function lockedSlice({ queueJobs }: QueueTables, slice: JobsSlice, and: SQL): SQL {
  const { queue, filter, after, until, limit } = slice;
  return sql`
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.id > ${after}::int8
        and j.id <= ${until}::int8${liveAndFits(filter)}${and}
      order by j.id limit ${limit}::int8
      for no key update skip locked`;
}

/** Jobs of one queue that fit a filter. */
export interface JobsOfQueue {
  readonly queue: string;
  readonly jobs: number;
  /** The largest of their ids. */
  readonly until: number;
}

/**
 * In which queues there are jobs to cancel, and how many: without `force` not those whose end was asked for.
 * With a `limit` it counts no more than that, the oldest ids first.
 *
 * **Under concurrency.** A plain read.
 */
export async function findCancellable(
  db: Executor,
  tables: QueueTables,
  search: CancellableSearch,
): Promise<JobsOfQueue[]> {
  const rows = await queryRows(db, tables, findCancellableQuery(tables, search));
  return rows.map((row) => ({
    queue: String(row.queue),
    jobs: Number(row.jobs),
    until: Number(row.until),
  }));
}

export interface CancellableSearch {
  readonly filter: LiveFilter & { readonly queue?: string | undefined };
  readonly force: boolean;
  /** The largest id; `undefined`: any. */
  readonly until: number | undefined;
  readonly limit: number | undefined;
}

/** @crossesQueues (plain) asks in which queues there are such jobs */
export function findCancellableQuery(
  { queueJobs }: QueueTables,
  { filter, force, until, limit }: CancellableSearch,
): SQL {
  const { queue } = filter;
  return sql`
    select f.queue, count(*)::float8 as jobs, max(f.id)::float8 as until from (
      select j.queue, j.id from ${queueJobs} as j
      where ${queue === undefined ? sql`true` : sql`j.queue = ${queue}`}${
        until === undefined ? sql`` : sql` and j.id <= ${until}::int8`
      }${force ? sql`` : sql` and j.cancel_reason is null`}${liveAndFits(filter)}${
        limit === undefined ? sql`` : sql` order by j.id limit ${limit}::int8`
      }
    ) as f group by f.queue order by f.queue`;
}
