import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** Where a job is looked for: among those that are live, or those that have steps. */
export type AmongJobs = 'live' | 'with steps';

/** The queue of a job; `undefined` where it is not found. **Under concurrency.** A plain read. */
export async function findQueue(
  db: Executor,
  tables: TablesOfWorkflows,
  id: number,
  among: AmongJobs,
): Promise<string | undefined> {
  const [row] = await queryRows(db, tables, findQueueQuery(tables, id, among), { entry: WORKFLOWS_ENTRY });
  return row === undefined ? undefined : String(row.queue);
}

/** By one of the two tables alone: a sender of signals needs no right to read steps. */
export function findQueueQuery(
  { queueJobs, queueSteps }: TablesOfWorkflows,
  id: number,
  among: AmongJobs,
): SQL {
  return among === 'live'
    ? sql`select j.queue from ${queueJobs} as j where j.id = ${id}::int8`
    : sql`select s.queue from ${queueSteps} as s where s.job_id = ${id}::int8 limit 1`;
}
