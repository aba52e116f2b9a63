import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { isTarget, type LiveTarget } from '../sql/live-target.ts';
import { isWaiting } from '../sql/waiting-job.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/**
 * Whether a live job waits, or a worker holds it; `undefined` where there is none.
 *
 * **Under concurrency.** A plain read, which sees no change of a transaction that is still open.
 */
export async function findWaitingJob(
  db: Runner,
  tables: TablesOfWorkflows,
  to: LiveTarget,
): Promise<'waiting' | 'running' | 'neither' | undefined> {
  const [row] = await queryRows(db, tables, findWaitingJobQuery(tables, to), { entry: WORKFLOWS_ENTRY });
  if (row === undefined) return undefined;
  if (row.running === true) return 'running';
  return row.waiting === true ? 'waiting' : 'neither';
}

export function findWaitingJobQuery(tables: TablesOfWorkflows, to: LiveTarget): SQL {
  return sql`
    select j.worker_id is not null as running, j.cancel_reason is null and ${isWaiting(tables)} as waiting
    from ${tables.queueJobs} as j where ${isTarget(to)}`;
}
