import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { isClaimRefused } from '../../sql/refused-claim.ts';
import type { JobToRun } from './run-job-now.ts';

/**
 * Which queues have jobs to run now, of these jobs: those that are unheld and have a time.
 *
 * **Under concurrency.** A plain read: a claim may be first.
 */
export async function findRunnable(
  db: Executor,
  tables: QueueTables,
  ids: readonly number[],
): Promise<JobToRun[]> {
  const rows = await queryRows(db, tables, findRunnableQuery(tables, ids));
  return rows.map(({ id, queue }) => ({ id: Number(id), queue: String(queue) }));
}

/** @crossesQueues finds jobs by their ids: the caller does not know the queues */
export function findRunnableQuery({ queueJobs }: QueueTables, ids: readonly number[]): SQL {
  return sql`
    select j.id, j.queue from ${queueJobs} as j
    where j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
      and j.worker_id is null and (j.run_at < 'infinity' or ${isClaimRefused})`;
}
