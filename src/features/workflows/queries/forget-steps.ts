import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** Which steps to forget: this one of a job, and all that began with it or later. */
export interface ForgottenSteps {
  readonly queue: string;
  readonly id: number;
  readonly from: string;
}

/**
 * Deletes steps of a job that no worker holds; returns how many.
 *
 * **Under concurrency.** It locks the job, so an attempt that records a step comes before it, and a claim
 * after it, with the steps that are left.
 */
export async function forgetSteps(
  db: Executor,
  tables: TablesOfWorkflows,
  forgotten: ForgottenSteps,
): Promise<number> {
  const rows = await queryRows(db, tables, forgetStepsQuery(tables, forgotten), { entry: WORKFLOWS_ENTRY });
  return rows.length;
}

export function forgetStepsQuery(
  { queueJobs, queueSteps }: TablesOfWorkflows,
  { queue, id, from }: ForgottenSteps,
): SQL {
  return sql`
    with live as materialized (
      select j.worker_id from ${queueJobs} as j where j.queue = ${queue} and j.id = ${id}::int8
      for no key update
    ),
    first as (
      select s.started_at from ${queueSteps} as s
      where s.job_id = ${id}::int8 and s.queue = ${queue} and s.name = ${from}
    )
    delete from ${queueSteps} as s
    using first
    where s.job_id = ${id}::int8 and s.queue = ${queue} 
      and (s.started_at >= first.started_at or s.name = 'undo' or s.name like 'undo:%')
      and not exists (select from live where worker_id is not null)
    returning s.name`;
}
