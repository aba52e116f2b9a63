import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** The names of a job's steps, in the order in which they began, without undos. A plain read. */
export async function findStepNames(
  db: Executor,
  tables: TablesOfWorkflows,
  job: { readonly queue: string; readonly id: number },
  limit: number,
): Promise<string[]> {
  const query = findStepNamesQuery(tables, job, limit);
  const rows = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  return rows.map(({ name }) => String(name));
}

export function findStepNamesQuery(
  { queueSteps }: TablesOfWorkflows,
  { queue, id }: { readonly queue: string; readonly id: number },
  limit: number,
): SQL {
  return sql`
    select s.name from ${queueSteps} as s
    where s.job_id = ${id}::int8 and s.queue = ${queue} and s.name <> 'undo' and s.name not like 'undo:%'
    order by s.started_at, s.name limit ${limit}::int4`;
}
