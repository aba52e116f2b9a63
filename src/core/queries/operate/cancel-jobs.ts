import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../../job/describe-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { endAsCancelled } from '../../sql/end-as-cancelled.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { fitsFilter, type JobFilter } from '../../sql/job-filter.ts';

export interface JobsOfQueue {
  readonly queue: string;
  /** In order. */
  readonly ids: readonly number[];
}

export interface JobsThatFit extends JobsOfQueue {
  readonly filter: Omit<JobFilter, 'ids' | 'queue'>;
}

export interface JobsCancel extends JobsThatFit {
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
export function cancelJobsQuery(tables: QueueTables, { reason, force, ...jobs }: JobsCancel): SQL {
  const nobodys = force === undefined ? [sql`j.worker_id is null`] : [];
  const free = sql`
    with free as materialized (${locked(tables, jobs, nobodys)}
    )`;
  return endAsCancelled(tables, { queue: jobs.queue, free, reason, channel: force?.channel });
}

export interface JobsCancelRequest extends JobsThatFit {
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

export function requestCancelsQuery(tables: QueueTables, { reason, ...jobs }: JobsCancelRequest): SQL {
  const held = [sql`j.worker_id is not null and j.cancel_reason is null`];
  return sql`
    with held as materialized (${locked(tables, jobs, held)}
    )
    update ${tables.queueJobs} as j set cancel_reason = ${reason}::text
    where j.queue = ${jobs.queue} and j.id = any(array(select id from held))
    returning j.id`;
}

function locked({ queueJobs }: QueueTables, { queue, ids, filter }: JobsThatFit, and: readonly SQL[]): SQL {
  return sql`
      select j.id from ${queueJobs} as j
      where ${sql.join([...fitsFilter({ ...filter, queue, ids }, 'j'), ...and], sql` and `)}
      order by j.id
      for no key update skip locked`;
}

/**
 * The first jobs to cancel, by queue: without `force` not those whose end was asked for. It looks in all
 * queues at once, since the jobs of one can only be found among those of all.
 *
 * **Under concurrency.** A plain read.
 */
export async function findCancellable(
  db: Executor,
  tables: QueueTables,
  search: CancellableSearch,
): Promise<JobsOfQueue[]> {
  const rows = await queryRows(db, tables, findCancellableQuery(tables, search));
  return rows.map(({ queue, ids }) => ({
    queue: String(queue),
    ids: String(ids).split(',').map(Number),
  }));
}

export interface CancellableSearch {
  readonly filter: JobFilter;
  readonly force: boolean;
  /** By id: above `after`, up to `until`, at most `limit`. */
  readonly after: number;
  readonly until: number;
  readonly limit: number;
}

/** @crossesQueues (plain) asks in which queues there are such jobs */
export function findCancellableQuery(
  { queueJobs }: QueueTables,
  { filter, force, after, until, limit }: CancellableSearch,
): SQL {
  const unasked = force ? [] : [sql`j.cancel_reason is null`];
  return sql`
    select f.queue, string_agg(f.id::text, ', ' order by f.id) as ids from (
      select j.queue, j.id from ${queueJobs} as j
      where ${sql.join(
        [sql`j.id > ${after}::int8`, sql`j.id <= ${until}::int8`, ...unasked, ...fitsFilter(filter, 'j')],
        sql` and `,
      )}
      order by j.id limit ${limit}::int8
    ) as f group by f.queue order by f.queue`;
}
