import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { amongFree, freeRows } from '../../sql/free-rows.ts';
import { notedGroups } from '../../sql/grouped-jobs.ts';
import { isClaimRefused } from '../../sql/refused-claim.ts';
import { groupsIn } from '../../sql/statement-context.ts';

export interface JobToRun {
  readonly id: number;
  readonly queue: string;
}

export interface JobsToRun {
  readonly ids: readonly number[];
  readonly queue: string;
}

/**
 * Makes an unheld job due now, unless it waits for something without an end; returns whether the job is due.
 * A job that was parked because its claim was refused is made due as well. A job that is already due keeps
 * its place. If the rest of its group waits for its next attempt, that wait ends too: it is still the first
 * of its group.
 *
 * **Under concurrency.** Never waits: a locked row, such as one that a claim has just locked, is left alone.
 * In a queue with groups it also notes which group claims should look at; that waits for no other
 * transaction.
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

export function runJobNowQuery(tables: QueueTables, jobs: JobToRun | JobsToRun): SQL {
  const { queueJobs } = tables;
  const { queue } = jobs;
  const ids =
    'id' in jobs ? sql`${jobs.id}` : sql`any(array(select unnest(${arrayText(jobs.ids)}::text::int8[])))`;
  const runnable = sql`j.queue = ${queue} and j.id = ${ids} and j.worker_id is null
        and (j.run_at < 'infinity' or ${isClaimRefused})`;
  const ctes = sql`
    with now as materialized (select statement_timestamp() as at),
    ${freeRows(tables, runnable)}`;
  const update = sql`
    update ${queueJobs} as j set run_at = least(j.run_at, now.at)
    from now
    where ${amongFree(queue)}
    returning j.id`;
  const groups = groupsIn(tables, queue);
  if (groups === undefined) return sql`${ctes}${update}`;
  return sql`${ctes},
    moved as (${update}, j.queue, j.group_key, j.run_at
    )${groups.unblock({ rows: 'moved', queue, which: 'retried' })}${notedGroups(tables, 'moved')}
    select id from moved`;
}
