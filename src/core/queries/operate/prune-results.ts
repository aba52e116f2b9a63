import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { isDistributed } from '../../sql/statement-context.ts';
import { isExpired, type Prune, type PruneResult, pruneQueueByQueue } from './prune-queue.ts';

export type { PruneResult } from './prune-queue.ts';

/**
 * Deletes up to `limit` results that finished longer ago than `retentionMs`, the oldest first; on Citus up to
 * `limit` of each queue.
 *
 * **Under concurrency.** Skips a result that another prune or a redrive has locked, so any number of workers
 * may prune at once and none waits.
 */
export async function pruneResults(db: Runner, tables: QueueTables, prune: Prune): Promise<PruneResult> {
  if (isDistributed(tables)) return await pruneQueueByQueue(db, tables, prune);
  const [row] = await queryRows(db, tables, pruneResultsQuery(tables, prune));
  return { pruned: Number(row?.pruned), workers: Number(row?.workers) };
}

/** @insteadOnCitus pruneQueueQuery */
export function pruneResultsQuery(
  { queueResults, queueWorkers }: QueueTables,
  { retentionMs, limit }: Prune,
): SQL {
  return sql`
    with expired as (
      select r.job_id, r.queue from ${queueResults} as r
      where ${isExpired(retentionMs)}
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
