import { type SQL, sql } from 'drizzle-orm';
import type { KeepResult } from '../../../core/job/definition.ts';
import { ownColumnsOf } from '../../../core/schema/own-columns.ts';
import { noticeOfEnd } from '../../../core/sql/end-notice.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { endHolds } from '../../../core/sql/hold-end.ts';
import { insertResults, withoutPayload } from '../../../core/sql/insert-results.ts';
import { groupsIn } from '../../../core/sql/statement-context.ts';
import { isTarget, type LiveTarget } from '../sql/live-target.ts';
import { isWaiting } from '../sql/waiting-job.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

export interface FinishWaiting {
  readonly to: LiveTarget;
  /** JSON text; `undefined`: none. */
  readonly output: string | undefined;
  readonly keepResult: KeepResult;
}

/**
 * Ends a job that waits as completed; returns whether it did. Those who wait for its end, and asked for a
 * notice, are notified by the same commit. Jobs that it has enqueued go on.
 *
 * **Under concurrency.** Never waits: a row that another transaction has locked is left alone. A claim that
 * came first holds the job, which then no longer matches. One that comes later finds no job. Steps are read
 * before the row is locked: an attempt that has ended in between has raised the fence. Of two of these
 * statements one ends the job.
 */
export async function finishWaitingJob(
  db: Runner,
  tables: TablesOfWorkflows,
  finish: FinishWaiting,
): Promise<boolean> {
  const query = finishWaitingJobQuery(tables, finish);
  return (await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY })).length > 0;
}

/**
 * For update, as the delete wants it: rows of the app that refer to the job lock it as well.
 *
 * @endsHold removes the row of a waiting job, which is not held
 */
export function finishWaitingJobQuery(
  tables: TablesOfWorkflows,
  { to, output, keepResult }: FinishWaiting,
): SQL {
  const { queueJobs } = tables;
  const { queue } = to;
  const isWhole = keepResult === true;
  // It may have kept those behind it waiting for its next attempt.
  const unblocked = groupsIn(tables, queue)?.unblock({ rows: 'finished', queue, which: 'both' }) ?? sql``;
  const insert = insertResults(tables, {
    payload: isWhole ? sql`f.payload` : sql`null::jsonb`,
    state: sql`'completed'`,
    output: output === undefined ? sql`null::jsonb` : sql`${output}::text::jsonb`,
    errors: sql`f.errors`,
    runAt: sql`case when f.run_at = 'infinity' then statement_timestamp() else f.run_at end`,
  });
  const recorded =
    keepResult === false
      ? sql``
      : sql`,
    recorded as (${insert}
      from finished as f
    )`;
  const told = noticeOfEnd(tables, { id: sql`f.id`, metadata: sql`f.metadata` });
  return endHolds(tables, {
    queue,
    ctes: sql`
    with waiting as materialized (
      select j.id, j.fence from ${queueJobs} as j where ${isTarget(to)} and ${isWaiting(tables)}
    ),
    free as materialized (
      select j.id from ${queueJobs} as j join waiting as w on j.id = w.id and j.fence = w.fence
      where j.queue = ${queue} and j.worker_id is null and j.cancel_reason is null
      for update of j skip locked
    )`,
    change: { endsAs: { failed: sql`false`, cancelled: undefined } },
    where: sql`j.queue = ${queue} and j.id = any(array(select id from free))`,
    returning: isWhole ? sql`j.*` : withoutPayload(ownColumnsOf(queueJobs)),
    answer: {
      name: 'finished',
      select: sql`${unblocked}${recorded}
    select f.id, ${told} as told from finished as f`,
    },
  });
}
