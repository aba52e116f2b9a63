import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { isDiscarded, type Redrive } from '../../sql/is-discarded.ts';
import type { WakeUp } from '../../sql/wake-up.ts';
import { type RedriveResult, redriveJobs } from './redrive-jobs.ts';

/**
 * Puts discarded jobs back on Citus, where a statement locks rows of one shard at a time: asks which queues
 * have such jobs, and redrives each queue by a separate statement. Outside of a transaction each commits by
 * itself.
 *
 * **Under concurrency.** As {@link redriveJobs}. If another call redrives jobs in between, fewer are left to
 * put back.
 */
export async function redriveQueueByQueue(
  db: Executor,
  tables: QueueTables,
  redrive: Redrive,
  wakeUp?: WakeUp,
): Promise<RedriveResult> {
  const result = { redriven: 0, duplicates: 0 };
  for (const ofQueue of await redrivesByQueue(db, tables, redrive)) {
    const { redriven, duplicates } = await redriveJobs(db, tables, ofQueue, wakeUp);
    result.redriven += redriven;
    result.duplicates += duplicates;
  }
  return result;
}

/** One redrive for each queue that has such jobs. */
export async function redrivesByQueue(
  db: Executor,
  tables: QueueTables,
  redrive: Redrive,
): Promise<(Redrive & { readonly queue: string })[]> {
  const rows = await queryRows(db, tables, findDiscardedQuery(tables, redrive));
  return rows.map(({ queue, jobs }) => ({ ...redrive, queue: String(queue), limit: Number(jobs) }));
}

/** Counts them by queue. */
export function findDiscardedQuery({ queueResults }: QueueTables, redrive: Redrive): SQL {
  return sql`
    select d.queue, count(*)::float8 as jobs from (
      select r.queue from ${queueResults} as r
      where ${isDiscarded(redrive)}
      order by r.job_id limit ${redrive.limit ?? null}::int8
    ) as d group by d.queue order by d.queue`;
}
