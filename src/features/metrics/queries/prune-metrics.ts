import { type SQL, sql } from 'drizzle-orm';
import type { PruneResult } from '../../../core/queries/operate/prune-queue.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { type KnownMetrics, queryMetrics } from '../sql/metrics-tables.ts';
import { folded } from './fold-metrics.ts';

/**
 * Deletes up to `limit` rows: reports after 48 hours, once their hour is summed up, and hours after 30 days.
 *
 * **Under concurrency.** Skips rows that another prune is deleting, so it waits for no other transaction.
 */
export async function pruneMetrics(db: Runner, known: KnownMetrics, limit: number): Promise<PruneResult> {
  const [row] = await queryMetrics(db, known, pruneMetricsQuery(known, limit));
  return { pruned: Number(row?.pruned), workers: Number(row?.workers) };
}

export function pruneMetricsQuery({ tables, metrics }: KnownMetrics, limit: number): SQL {
  return sql`
    with over as (
      select m.worker_id, m.report, m.queue, m.kind from ${metrics} as m
      where (m.minutes = 1 and m.at < statement_timestamp() - interval '48 hours'
          and m.at < to_timestamp(${folded(metrics)}))
        or (m.minutes = 60 and m.at < statement_timestamp() - interval '720 hours')
      limit ${limit}
      for update skip locked
    ),
    pruned as (
      delete from ${metrics} as m
      where (m.worker_id, m.report, m.queue, m.kind) in (select worker_id, report, queue, kind from over)
      returning 1
    )
    select count(*)::float8 as pruned,
      (select count(*) from ${tables.queueWorkers})::float8 as workers from pruned`;
}
