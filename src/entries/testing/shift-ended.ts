import { getTableColumns, type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Executor, Limits, Queue, Workflows } from '../../index.ts';
import { arrayText, queryRows } from '../../internal.ts';
import { writtenHere } from './written-here.ts';

/** A moment in a drain at which time has passed, for what is live. */
export interface Passage {
  /** When that was, as Postgres writes times; `infinity`: after all that has ended. */
  readonly at: string;
  /** How much. */
  readonly ms: number;
}

/**
 * Moves back what {@link Passage passages} have left alone: what has ended, each row by as much as has passed
 * since its end, and what only claims of workers read.
 *
 * **Under concurrency.** As `shiftTimes`.
 */
export async function shiftEnded(
  db: Executor,
  queue: Queue,
  passages: readonly Passage[],
  written: boolean,
): Promise<void> {
  if (passages.length > 0) await queryRows(db, queue.tables, shiftEndedQuery(queue, passages, written));
}

export function shiftEndedQuery(queue: Queue, passages: readonly Passage[], written: boolean): SQL {
  const { queueJobs, queueResults, queuePauses } = queue.tables;
  // `createQueue` has put them there, or nothing.
  const limits = queue.limits as Limits | undefined;
  const workflows = queue.workflows as Workflows | undefined;
  let leftMs = passages.reduce((sum, { ms }) => sum + ms, 0);
  const rests = [leftMs, ...passages.map(({ ms }) => (leftMs -= ms))];
  const shifted = (
    table: PgTable,
    keys: readonly string[],
    endedAt: SQL,
    { also = [], which = [] }: { readonly also?: readonly SQL[]; readonly which?: readonly SQL[] } = {},
  ) => {
    const columns = getTableColumns(table);
    const rest = sql`p.rests[1 + width_bucket(${endedAt}, p.ats)] * interval '1 millisecond'`;
    const times = keys.map((key) => {
      const name = sql.identifier(columns[key]?.name ?? key);
      return sql`${name} = t.${name} - ${rest}`;
    });
    const where = [sql`true`, ...which, ...(written ? [writtenHere('t')] : [])];
    return sql`update ${table} as t set ${sql.join([...times, ...also], sql`, `)}
      from passages as p where ${sql.join(where, sql` and `)}`;
  };
  const always = sql`'-infinity'::timestamptz`;
  const noRates = { also: [sql`rate_used = '{}'`] };
  // A job's steps moved with it until its end.
  const endOfJob = sql`coalesce(
    (select r.finished_at from ${queueResults} as r where r.job_id = t.job_id and r.queue = t.queue),
    t.ended_at, t.started_at)`;
  const updates = [
    shifted(queueResults, ['runAt', 'createdAt', 'claimedAt', 'finishedAt'], sql`t.finished_at`),
    shifted(queuePauses, ['pausedAt'], sql`t.paused_at`),
    ...(workflows === undefined
      ? []
      : [
          shifted(workflows.tables.queueSteps, ['until', 'startedAt', 'endedAt'], endOfJob, {
            which: [
              sql`not exists (select from ${queueJobs} as j where j.id = t.job_id and j.queue = t.queue)`,
            ],
          }),
          shifted(workflows.tables.queueMailboxes, ['updatedAt'], sql`t.updated_at`),
          shifted(workflows.tables.queueBatches, ['createdAt', 'recountedAt', 'endedAt'], sql`t.ended_at`, {
            which: [sql`t.ended_at is not null`],
          }),
        ]),
    ...(limits === undefined
      ? []
      : [
          shifted(limits.tables.queueGroups, ['readyAt', 'boundedSince'], always, noRates),
          shifted(limits.tables.queueUsage, [], always, noRates),
        ]),
  ];
  const ctes = updates.map((update, at) => sql`${sql.raw(`shifted_${at}`)} as (${update})`);
  return sql`
    with passages as materialized (
      select ${arrayText(passages.map(({ at }) => at))}::text::timestamptz[] as ats,
        ${arrayText(rests)}::text::float8[] as rests
    ), ${sql.join(ctes, sql`, `)} select 1`;
}
