import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';
import type { WorkflowTable } from './find-left-rows.ts';

/**
 * Deletes the rows of jobs of one queue that are gone; returns how many.
 *
 * **Under concurrency.** It looks again whether they are gone: a redrive may have come in between. What
 * another worker is deleting it waits for, which takes a moment.
 */
export async function deleteLeftRows(
  db: Runner,
  tables: TablesOfWorkflows,
  which: WorkflowTable,
  queue: string,
  ids: readonly number[],
): Promise<number> {
  const query = deleteLeftRowsQuery(tables, which, queue, ids);
  return (await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY })).length;
}

export function deleteLeftRowsQuery(
  tables: TablesOfWorkflows,
  which: WorkflowTable,
  queue: string,
  ids: readonly number[],
): SQL {
  const { queueJobs, queueResults } = tables;
  return sql`
    delete from ${tables[which]} as w
    where w.queue = ${queue} and w.job_id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
      and not exists (select from ${queueJobs} as j where j.queue = ${queue} and j.id = w.job_id)
      and not exists (select from ${queueResults} as r where r.queue = ${queue} and r.job_id = w.job_id)
    returning w.job_id`;
}
