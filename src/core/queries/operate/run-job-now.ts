import { type SQL, sql } from 'drizzle-orm';
import { notedGroups } from '../../../features/limits/sql/grouped-jobs.ts';
import { groupingOf } from '../../../features/limits/sql/grouping.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { isClaimRefused } from '../../sql/refused-claim.ts';

export interface JobToRun {
  readonly id: number;
  readonly queue: string;
}

/** Several jobs of one queue. */
export interface JobsToRun {
  readonly ids: readonly number[];
  readonly queue: string;
}

/**
 * Makes a job that nobody holds due now, unless it waits for something without an end; returns whether it is.
 * One that was parked because its claim was refused is made due as well.
 * A job that has been due for longer keeps its place. Where it keeps those of its group waiting for its next
 * attempt, that time is over, too: it is still the first of them.
 *
 * **Under concurrency.** Never waits: a locked row, such as one that a claim has just locked, is left alone.
 * In a queue with groups it also notes for the claims which group to look at, which waits for nobody.
 */
export async function runJobNow(db: Executor, tables: QueueTables, job: JobToRun): Promise<boolean> {
  const rows = await queryRows(db, tables, runJobNowQuery(tables, job));
  return rows.length > 0;
}

/**
 * Does the same with several jobs of one queue. Returns the ids of those that are due now.
 *
 * **Under concurrency.** As {@link runJobNow}, for each of them.
 */
export async function runJobsNow(db: Executor, tables: QueueTables, jobs: JobsToRun): Promise<number[]> {
  const rows = await queryRows(db, tables, runJobNowQuery(tables, jobs));
  return rows.map(({ id }) => Number(id));
}

/**
 * In which queues there are jobs to run now, of these: those that nobody holds and that have a time.
 *
 * **Under concurrency.** A plain read: a claim may be first.
 */
export async function findRunnable(
  db: Executor,
  tables: QueueTables,
  ids: readonly number[],
): Promise<JobToRun[]> {
  const rows = await queryRows(db, tables, findRunnableQuery(tables, ids));
  return rows.map(({ id, queue }) => ({ id: Number(id), queue: String(queue) }));
}

export function findRunnableQuery({ queueJobs }: QueueTables, ids: readonly number[]): SQL {
  return sql`
    select j.id, j.queue from ${queueJobs} as j
    where j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
      and j.worker_id is null and (j.run_at < 'infinity' or ${isClaimRefused})`;
}

export function runJobNowQuery(tables: QueueTables, jobs: JobToRun | JobsToRun): SQL {
  const { queueJobs } = tables;
  const { queue } = jobs;
  const ids =
    'id' in jobs ? sql`${jobs.id}` : sql`any(array(select unnest(${arrayText(jobs.ids)}::text::int8[])))`;
  const ctes = sql`
    with now as materialized (select statement_timestamp() as at),
    free as materialized (
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.id = ${ids} and j.worker_id is null
        and (j.run_at < 'infinity' or ${isClaimRefused})
      for no key update skip locked
    )`;
  const update = sql`
    update ${queueJobs} as j set run_at = least(j.run_at, now.at)
    from now
    where j.queue = ${queue} and j.id = any(array(select id from free))
    returning j.id`;
  const grouping = groupingOf(tables, queue);
  if (grouping === undefined) return sql`${ctes}${update}`;
  return sql`${ctes},
    moved as (${update}, j.queue, j.group_key, j.run_at
    ),
    unblocked as (
      delete from ${grouping.tables.queueHolds} as h using moved as m
      where h.queue = ${queue} and h.group_key = m.group_key and h.job_id = m.id and h.until < 'infinity'
    )${notedGroups(tables, 'moved')}
    select id from moved`;
}
