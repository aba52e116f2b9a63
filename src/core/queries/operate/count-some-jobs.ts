import { type SQL, sql } from 'drizzle-orm';
import { MAX_PRIORITY } from '../../job/limits.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { liveCounts, toLiveCount } from '../../sql/live-counts.ts';
import { throughIndex } from '../../sql/through-index.ts';
import type { CountedKind } from './count-jobs.ts';

/** So many jobs of a queue are read, and as many that are in groups. */
export const COUNTED_JOBS = 10_000;

/**
 * Counts the live jobs of some queues by kind, but no more than the first {@link COUNTED_JOBS} of each, in
 * the order of claims, and as many in groups. One more than that says that there are more.
 *
 * **Under concurrency.** A plain read of one snapshot. It reads by the indexes of the claims, so under an old
 * snapshot it walks over dead rows as they would: see `withinTime`.
 */
export async function countSomeJobs(
  db: Runner,
  tables: QueueTables,
  queues: readonly string[],
): Promise<CountedKind[]> {
  const rows = await queryRows(db, tables, countSomeJobsQuery(tables, queues));
  return rows.map((row) => ({
    queue: String(row.queue),
    kind: String(row.kind),
    ...toLiveCount(row),
    killers: undefined,
  }));
}

/** @insteadOnCitus countJobsQuery */
export function countSomeJobsQuery({ queueJobs }: QueueTables, queues: readonly string[]): SQL {
  const limit = sql.raw(String(COUNTED_JOBS + 1));
  const columns = sql.raw('j.kind, j.worker_id, j.run_at, j.group_key');
  return sql`
    select i.queue, s.*
    from jsonb_array_elements_text(${JSON.stringify(queues)}::text::jsonb) as i(queue)
    cross join lateral (
      select j.kind, ${liveCounts}
      from (
        (
          select ${columns}
          from generate_series(0, ${sql.raw(String(MAX_PRIORITY))}) as p(priority)
          cross join lateral (
            select ${columns} from ${queueJobs} as j
            where j.queue = i.queue and j.priority = p.priority::int2
              and ${throughIndex(sql`j.group_key is null`)}
            order by j.run_at, j.id limit ${limit}
          ) as j
          limit ${limit}
        )
        union all
        (
          select ${columns} from ${queueJobs} as j
          where j.queue = i.queue and j.group_key is not null
          limit ${limit}
        )
      ) as j
      group by j.kind
    ) as s`;
}
