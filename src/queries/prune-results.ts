import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';

/** What a prune has done, and how many workers there are that prune as well. */
export interface PruneResult {
  readonly pruned: number;
  readonly workers: number;
}

/**
 * Deletes up to `limit` results that finished longer ago than `retentionMs`, the oldest first.
 *
 * **Under concurrency.** Skips a result that another prune or a redrive has locked, so any number of workers
 * may prune at once and none waits.
 */
export async function pruneResults(
  db: Executor,
  tables: QueueTables,
  prune: { readonly retentionMs: number; readonly limit: number },
): Promise<PruneResult> {
  const [row] = await queryRows(db, tables, pruneResultsQuery(tables, prune));
  return { pruned: Number(row?.pruned), workers: Number(row?.workers) };
}

export function pruneResultsQuery(
  { queueResults, queueWorkers }: QueueTables,
  { retentionMs, limit }: { readonly retentionMs: number; readonly limit: number },
): SQL {
  return sql`
    with expired as (
      select r.job_id, r.queue from ${queueResults} as r
      where r.finished_at < statement_timestamp() - ${retentionMs}::float8 * interval '1 millisecond'
      order by r.finished_at limit ${limit}
      for update skip locked
    ),
    pruned as (
      delete from ${queueResults} as r
      where (r.job_id, r.queue) in (select job_id, queue from expired)
      returning 1
    )
    select count(*)::float8 as pruned, (select count(*) from ${queueWorkers})::float8 as workers from pruned`;
}
