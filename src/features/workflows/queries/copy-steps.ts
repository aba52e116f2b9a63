import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** The steps of one job that another one of its queue is to have. */
export interface StepsToCopy {
  readonly queue: string;
  readonly id: number;
  /** The first step that is not copied; nor are those that had not ended when it began. */
  readonly from: string;
  /** The other job, which has just been inserted. */
  readonly to: number;
}

/**
 * Copies the steps of a job that had ended when a step began; returns how many. `undefined`: there is no
 * such step.
 *
 * - What was undone is not copied, nor what says so.
 * - A step that has enqueued children is copied if all of them had ended by then, and none was put back.
 *   Otherwise the other job could wait for them without being woken. Nothing waits for members of a flow so.
 * - The mailboxes have the signals that the copied steps have received, so that the next wait looks for the
 *   one after them.
 * - What the job has waited for before it began, the other one may ask for as well, but does not wait for.
 * - The fence says that this is not the job's first claim, for which steps would not be read.
 *
 * **Under concurrency.** Sent in the transaction that has inserted the other job, so no worker sees that
 * before. A step that has ended does not change, whatever its job does meanwhile.
 */
export async function copySteps(
  tx: Executor,
  tables: TablesOfWorkflows,
  copy: StepsToCopy,
): Promise<number | undefined> {
  const query = copyStepsQuery(tables, copy);
  const [row] = await queryRows(tx, tables, query, { entry: WORKFLOWS_ENTRY });
  return row?.known === true ? Number(row.copied) : undefined;
}

export function copyStepsQuery(tables: TablesOfWorkflows, { queue, id, from, to }: StepsToCopy): SQL {
  const { queueJobs, queueResults, queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies } =
    tables;
  return sql`
    with first as materialized (
      select s.started_at as at from ${queueSteps} as s
      where s.job_id = ${id}::int8 and s.queue = ${queue} and s.name = ${from}
    ),
    kept as materialized (
      select s.* from ${queueSteps} as s cross join first
      where s.job_id = ${id}::int8 and s.queue = ${queue}
        and case when s.kind = 'sleep' then coalesce(s.ended_at, s.until) else s.ended_at end <= first.at
        and s.name <> ${from} and s.name <> 'undo' and s.name not like 'undo:%'
        and (('undo:' || s.name) in (
          select u.name from ${queueSteps} as u where u.job_id = ${id}::int8 and u.queue = ${queue}
        )) is not true
        and (s.kind <> 'enqueue' or not exists (
          select from ${queueWaits} as w
          where w.batch_id = (s.output ->> 'batch')::int8 and w.policy in ('parent', 'detached')
        ) or not exists (
          select from ${queueBatches} as b
          where b.id = (s.output ->> 'batch')::int8 and (b.ended_at is null or b.pending > 0)
          union all
          select from ${queueTallies} as t where t.batch_id = (s.output ->> 'batch')::int8
          union all
          select from ${queueResults} as r
          where r.batch_id = (s.output ->> 'batch')::int8 and r.finished_at > first.at
        ))
    ),
    copied as (
      insert into ${queueSteps} (job_id, queue, name, kind, signal, output, error, attempts, fence, until,
        started_at, ended_at)
      select ${to}::int8, k.queue, k.name, k.kind, k.signal, k.output, k.error, k.attempts, 0, k.until,
        k.started_at, k.ended_at
      from kept as k
      returning name
    ),
    received as (
      insert into ${queueMailboxes} (job_id, queue, name, sent, received)
      select ${to}::int8, ${queue}::text, k.signal,
        jsonb_agg(jsonb_build_object('id', k.name, 'value',
          case when k.kind = 'first' then k.output -> 'value' else k.output end) order by k.ended_at, k.name),
        count(*)::int4
      from kept as k where k.signal is not null and k.output is not null
      group by k.signal
    ),
    waited as (
      insert into ${queueWaits} (batch_id, job_id, queue, policy)
      select w.batch_id, ${to}::int8, w.queue, 'forked'
      from ${queueWaits} as w join ${queueBatches} as b on b.id = w.batch_id
      where w.job_id = ${id}::int8 and w.queue = ${queue} and w.policy in ('run', 'cancel', 'forked')
        and b.ended_at is not null
    ),
    marked as (
      update ${queueJobs} as j set fence = j.fence + 1 where j.queue = ${queue} and j.id = ${to}::int8
    )
    select exists (select from first) as known, (select count(*) from copied)::float8 as copied`;
}
