import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** The queue of a live job; `undefined` where there is none. **Under concurrency.** A plain read. */
export async function findQueue(
  db: Executor,
  tables: TablesOfWorkflows,
  id: number,
): Promise<string | undefined> {
  const [row] = await queryRows(db, tables, findQueueQuery(tables, id), { entry: WORKFLOWS_ENTRY });
  return row === undefined ? undefined : String(row.queue);
}

/** @crossesQueues finds the queue of a job by its id */
export function findQueueQuery({ queueJobs }: TablesOfWorkflows, id: number): SQL {
  return sql`select j.queue from ${queueJobs} as j where j.id = ${id}::int8`;
}
