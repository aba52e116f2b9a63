import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { notedGroups } from '../sql/grouped-jobs.ts';
import { groupingOf } from '../sql/grouping.ts';

export interface JobToRun {
  readonly id: number;
  readonly queue: string;
}

/**
 * Makes a job that nobody holds due now, unless it waits for something without an end; returns whether it is.
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

export function runJobNowQuery(tables: QueueTables, { id, queue }: JobToRun): SQL {
  const { queueJobs } = tables;
  const ctes = sql`
    with now as materialized (select statement_timestamp() as at),
    free as materialized (
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.id = ${id} and j.worker_id is null and j.run_at < 'infinity'
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
