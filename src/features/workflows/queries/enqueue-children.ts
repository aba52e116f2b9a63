import { type SQL, sql } from 'drizzle-orm';
import type { NewJob } from '../../../core/job/new-job.ts';
import { COLUMNS, givenColumns, ownValues } from '../../../core/queries/enqueue/insert-jobs.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { type Holder, isStillHeld } from '../../../core/sql/fence.ts';
import { anyInGroup, groupColumns, haveGroupColumns, notedGroups } from '../../../core/sql/grouped-jobs.ts';
import { jobRows } from '../../../core/sql/job-rows.ts';
import { ownNames } from '../../../core/sql/own-values.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { lockPatience, type RowLocks } from '../../../core/sql/row-locks.ts';
import { notified, type WakeUp, wakePayload } from '../../../core/sql/wake-up.ts';
import type { WaitPolicy } from '../../batches/schema/queue-waits.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';
import type { StepToRecord } from './record-steps.ts';

export interface ChildrenToInsert {
  /** The step that enqueues them. Its output is what this returns. */
  readonly step: Pick<StepToRecord, 'id' | 'fence' | 'name' | 'tookMs'>;
  /** At least one, all of one queue, none with a key: a job that is there already is not to be waited for. */
  readonly jobs: readonly NewJob[];
  readonly policy: Extract<WaitPolicy, 'parent' | 'detached'>;
  /** `undefined`: no notification is sent. */
  readonly wakeUp: WakeUp | undefined;
}

/** Children that are there, as their step has recorded them. */
export interface InsertedChildren {
  readonly batch: number;
  readonly ids: readonly number[];
  /** Whether the workers of their queue are notified. */
  readonly woke: boolean;
}

/**
 * Inserts the children of a held job, their batch, and the step that has enqueued them: all of it or nothing,
 * in one statement, where a transaction would need six. `undefined`: this worker no longer holds the job.
 *
 * **Under concurrency.** It locks the job's row, so an attempt that has lost the job inserts nothing. A
 * repetition, whose first answer was lost, finds the step recorded under its fence and returns the same
 * children. One that has waited for the first, which was under way still, does not see its step. The primary
 * key of the steps refuses it with 23505, and so all that it has inserted: send it once more.
 *
 * @param locks `wait` in a transaction of the app's, `briefly` elsewhere: see `lockPatience`
 */
export async function enqueueChildren(
  db: Runner,
  tables: TablesOfWorkflows,
  holder: Holder,
  children: ChildrenToInsert,
  locks: Exclude<RowLocks, 'skip'>,
): Promise<InsertedChildren | undefined> {
  const query = enqueueChildrenQuery(tables, holder, children, locks);
  const [row] = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  if (row === undefined) return undefined;
  return { ...JSON.parse(String(row.children)), woke: row.woke === true };
}

export function enqueueChildrenQuery(
  tables: TablesOfWorkflows,
  holder: Holder,
  { step, jobs, policy, wakeUp }: ChildrenToInsert,
  locks: Exclude<RowLocks, 'skip'>,
): SQL {
  const { queueJobs, queueBatches, queueWaits, queueSteps } = tables;
  const { name, tookMs, fence } = step;
  const ofStep = sql`s.job_id = ${step.id}::int8 and s.queue = ${holder.queue} and s.name = ${name}
        and s.ended_at is not null`;
  const grouped = anyInGroup(jobs);
  const own = givenColumns(queueJobs, jobs);
  const columns = sql`${sql.raw(COLUMNS)}${groupColumns(haveGroupColumns(jobs))}`;
  return sql`
    with known as materialized (
      select s.output from ${queueSteps} as s where ${ofStep} and s.fence = ${fence}::int8
    ),
    held as materialized (
      select j.id, j.queue, j.fence from ${queueJobs} as j${lockPatience(tables, locks)}
      where ${isStillHeld(holder, step)}
        and not exists (select from ${queueSteps} as s where ${ofStep})
        and (select count(*) from ${planAnew()}) > 0
      for no key update of j
    ),
    opened as (
      insert into ${queueBatches} as b (total, pending)
      select ${jobs.length}::int8, ${jobs.length}::int8 from held
      returning b.id
    ),
    waits as (
      insert into ${queueWaits} (batch_id, job_id, queue, policy)
      select o.id, h.id, h.queue, ${policy}::text from opened as o cross join held as h
    ),
    inserted as (
      insert into ${queueJobs} (${columns}, batch_id${ownNames(own)})
      select ${columns}, o.id${ownValues(own)} from (${jobRows(jobs, own)}) as i cross join opened as o
      order by place
      returning id, queue, run_at${grouped ? sql`, group_key` : sql``}
    )${grouped ? notedGroups(tables, 'inserted') : sql``},
    recorded as (
      insert into ${queueSteps} as s (job_id, queue, name, kind, output, fence, started_at, ended_at)
      select h.id, h.queue, ${name}, 'enqueue',
        jsonb_build_object('batch', o.id, 'ids', (select json_agg(i.id) from inserted as i)), h.fence,
        statement_timestamp() - ${tookMs}::float8 * interval '1 millisecond', statement_timestamp()
      from opened as o cross join held as h
      returning s.output
    )
    select r.output::text as children, ${
      wakeUp === undefined
        ? sql`false`
        : sql`case when (select bool_or(i.run_at <= statement_timestamp()) from inserted as i)
      then ${notified(wakeUp.channel, wakePayload(jobs[0]?.queue ?? '', wakeUp))} end`
    } as woke from recorded as r
    union all
    select k.output::text, false from known as k`;
}
