import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/**
 * The queue of a job that is live or has steps; `undefined` for another. **Under concurrency.** A plain read.
 */
export async function findQueue(
  db: Executor,
  tables: TablesOfWorkflows,
  id: number,
): Promise<string | undefined> {
  const [row] = await queryRows(db, tables, findQueueQuery(tables, id), { entry: WORKFLOWS_ENTRY });
  return row === undefined ? undefined : String(row.queue);
}

export function findQueueQuery({ queueJobs, queueSteps }: TablesOfWorkflows, id: number): SQL {
  return sql`
    select j.queue from ${queueJobs} as j where j.id = ${id}::int8
    union all
    (select s.queue from ${queueSteps} as s where s.job_id = ${id}::int8 limit 1)
    limit 1`;
}
