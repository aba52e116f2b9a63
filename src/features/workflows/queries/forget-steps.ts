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
 * What an attempt receives next is counted by the signals that its steps have received. So those of the
 * steps that are left come first in their mailbox, which counts them alone as received. What the others had
 * received comes after them, as it was sent.
 *
 * **Under concurrency.** Sent in the transaction that has locked the job's mailboxes, and then its row, or
 * inserted that: no worker holds the job then, no signal comes, and this statement sees all that earlier
 * attempts have recorded.
 */
export async function forgetSteps(
  tx: Executor,
  tables: TablesOfWorkflows,
  forgotten: ForgottenSteps,
): Promise<number> {
  const rows = await queryRows(tx, tables, forgetStepsQuery(tables, forgotten), { entry: WORKFLOWS_ENTRY });
  return rows.length;
}

/** `IS TRUE` keeps the lists from being joined: they are hashed, however few rows Postgres expects. */
export function forgetStepsQuery(
  { queueSteps, queueMailboxes }: TablesOfWorkflows,
  { queue, id, from }: ForgottenSteps,
): SQL {
  const received = sql`case when s.kind = 'first' then s.output -> 'value' else s.output end`;
  return sql`
    with first as (
      select s.started_at from ${queueSteps} as s
      where s.job_id = ${id}::int8 and s.queue = ${queue} and s.name = ${from}
    ),
    forgotten as (
      delete from ${queueSteps} as s
      using first
      where s.job_id = ${id}::int8 and s.queue = ${queue}
        and (
          s.started_at >= first.started_at or s.name = 'undo' or s.name like 'undo:%' or exists (
            select from ${queueSteps} as u
            where u.job_id = s.job_id and u.queue = s.queue and u.name = 'undo:' || s.name
          )
        )
      returning s.name, s.signal, s.output
    ),
    kept as materialized (
      select s.signal, ${received} as value,
        row_number() over (partition by s.signal, ${received}) as nth
      from ${queueSteps} as s
      where s.job_id = ${id}::int8 and s.queue = ${queue} and s.signal is not null
        and s.output is not null and s.name not in (select f.name from forgotten as f)
    ),
    sorted as (
      update ${queueMailboxes} as m
      set received = (select count(*) from kept as k where k.signal = m.name), sent = case
        when (m.name in (select k.signal from kept as k)) is true then (
          select jsonb_agg(e.entry order by (
            (m.name, e.entry -> 'value', e.nth) in (select k.signal, k.value, k.nth from kept as k)
          ) is not true, e.place)
          from (
            select entry, place,
              row_number() over (partition by entry -> 'value' order by place) as nth
            from jsonb_array_elements(m.sent) with ordinality as e(entry, place)
          ) as e
        )
        else m.sent end
      where m.job_id = ${id}::int8 and m.queue = ${queue}
        and (m.name in (select f.signal from forgotten as f where f.output is not null)) is true
    )
    select name from forgotten`;
}
