import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { fitsFilter, type JobFilter } from '../../sql/job-filter.ts';
import type { JobsOfQueue } from '../../sql/jobs-that-fit.ts';

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
