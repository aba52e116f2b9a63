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
 * Deletes steps of a job, with what was undone and what says so; returns how many.
 *
 * **Under concurrency.** Sent in the transaction that has locked the job's row, or inserted it, after that:
 * no worker holds the job then, and this statement sees all that earlier attempts have recorded.
 */
export async function forgetSteps(
  tx: Executor,
  tables: TablesOfWorkflows,
  forgotten: ForgottenSteps,
): Promise<number> {
  const rows = await queryRows(tx, tables, forgetStepsQuery(tables, forgotten), { entry: WORKFLOWS_ENTRY });
  return rows.length;
}

export function forgetStepsQuery(
  { queueSteps }: TablesOfWorkflows,
  { queue, id, from }: ForgottenSteps,
): SQL {
  return sql`
    with first as (
      select s.started_at from ${queueSteps} as s
      where s.job_id = ${id}::int8 and s.queue = ${queue} and s.name = ${from}
    )
    delete from ${queueSteps} as s
    using first
    where s.job_id = ${id}::int8 and s.queue = ${queue}
      and (
        s.started_at >= first.started_at or s.name = 'undo' or s.name like 'undo:%' or exists (
          select from ${queueSteps} as u
          where u.job_id = s.job_id and u.queue = s.queue and u.name = 'undo:' || s.name
        )
      )
    returning s.name`;
}
