import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

/** What a prune has done, and how many workers there are that prune as well. */
export interface PruneResult {
  readonly pruned: number;
  readonly workers: number;
}

export interface Prune {
  readonly retentionMs: number;
  readonly limit: number;
}

/**
 * What `pruneResults` does on Citus, which locks rows of one shard at a time: asks for the queues that have
 * something to prune, and prunes each by a statement of its own.
 *
 * **Under concurrency.** As `pruneResults`.
 */
export async function pruneQueueByQueue(db: Runner, tables: QueueTables, prune: Prune): Promise<PruneResult> {
  const queues = await queryRows(db, tables, findExpiredQuery(tables, prune.retentionMs));
  let pruned = 0;
  for (const { queue } of queues) {
    pruned += (await queryRows(db, tables, pruneQueueQuery(tables, String(queue), prune))).length;
  }
  const [row] = await queryRows(db, tables, countWorkersQuery(tables));
  return { pruned, workers: Number(row?.workers) };
}

/** For a `where` over the results as `r`. */
export function isExpired(retentionMs: number): SQL {
  return sql`r.finished_at < statement_timestamp() - ${retentionMs}::float8 * interval '1 millisecond'`;
}

export function findExpiredQuery({ queueResults }: QueueTables, retentionMs: number): SQL {
  return sql`select r.queue from ${queueResults} as r where ${isExpired(retentionMs)} group by r.queue`;
}

export function pruneQueueQuery(
  { queueResults }: QueueTables,
  queue: string,
  { retentionMs, limit }: Prune,
): SQL {
  return sql`
    with expired as (
      select r.job_id from ${queueResults} as r
      where r.queue = ${queue} and ${isExpired(retentionMs)}
      order by r.finished_at limit ${limit}
      for update skip locked
    )
    delete from ${queueResults} as r
    where r.queue = ${queue} and r.job_id = any(array(select job_id from expired))
    returning r.job_id`;
}

export function countWorkersQuery({ queueWorkers }: QueueTables): SQL {
  return sql`select count(*)::float8 as workers from ${queueWorkers}`;
}
