import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/**
 * Locks the row of a live job, and says whether a worker holds the job, or is about to, since it is to end.
 * `undefined`: there is no such row, or another transaction has locked it.
 *
 * **Under concurrency.** Never waits. Until the transaction ends, no claim takes the job and no attempt
 * records a step.
 */
export async function lockLiveJob(
  tx: Executor,
  tables: TablesOfWorkflows,
  job: { readonly queue: string; readonly id: number },
): Promise<'held' | 'free' | undefined> {
  const [row] = await queryRows(tx, tables, lockLiveJobQuery(tables, job), { entry: WORKFLOWS_ENTRY });
  if (row === undefined) return undefined;
  return row.held === true ? 'held' : 'free';
}

export function lockLiveJobQuery(
  { queueJobs }: TablesOfWorkflows,
  { queue, id }: { readonly queue: string; readonly id: number },
): SQL {
  return sql`
    select j.worker_id is not null or j.cancel_reason is not null as held from ${queueJobs} as j
    where j.queue = ${queue} and j.id = ${id}::int8
    for no key update skip locked`;
}
