import { getTableColumns, type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Executor, Limits, Queue, Schedules, Workflows } from '../../index.ts';
import { queryRows } from '../../internal.ts';
import { writtenHere } from './written-here.ts';

/** What {@link shiftTimes} moves. */
export interface Shift {
  /** How far back. */
  readonly ms: number;
  /** Whether only what this transaction has written. */
  readonly written: boolean;
  /**
   * `live`: what the way of a live job depends on. `calendar`: schedules alone. @default undefined all of it
   */
  readonly only?: 'live' | 'calendar' | undefined;
}

/**
 * Moves the times in a queue's tables back, so that the database's clock is later for them. The caller must
 * find a schedule's next tick again, since a cron expression does not move. Rates are as if nothing had
 * started. Returns when it did so, as Postgres writes times.
 *
 * `live` leaves alone what has ended or run out, and what only claims of workers read: see `shiftEnded`. A
 * drain moves the rest at each of its steps, and a transaction cannot remove the dead rows that it makes.
 *
 * **Under concurrency.** Waits for other transactions that write the same rows. No other transaction can
 * write rows that only this transaction has written.
 */
export async function shiftTimes(db: Executor, queue: Queue, shift: Shift): Promise<string> {
  const [row] = await queryRows(db, queue.tables, shiftTimesQuery(queue, shift));
  return String(row?.at);
}

export function shiftTimesQuery(queue: Queue, { ms, written, only }: Shift): SQL {
  const { queueJobs, queueResults, queuePauses } = queue.tables;
  // `createQueue` has put them there, or nothing.
  const schedules = queue.schedules as Schedules | undefined;
  const limits = queue.limits as Limits | undefined;
  const workflows = queue.workflows as Workflows | undefined;
  const span = sql`${ms}::float8 * interval '1 millisecond'`;
  const isLive = only === 'live';
  const shifted = (
    table: PgTable,
    keys: readonly string[],
    { also = [], live }: { readonly also?: readonly SQL[]; readonly live?: SQL } = {},
  ) => {
    const columns = getTableColumns(table);
    const times = keys.map((key) => {
      const name = sql.identifier(columns[key]?.name ?? key);
      return sql`${name} = t.${name} - ${span}`;
    });
    const which = [...(isLive && live ? [live] : []), ...(written ? [writtenHere('t')] : [])];
    const where = which.length === 0 ? sql`true` : sql.join(which, sql` and `);
    return sql`update ${table} as t set ${sql.join([...times, ...also], sql`, `)} where ${where}`;
  };
  const toCome = (column: string) => ({ live: sql`t.${sql.identifier(column)} > statement_timestamp()` });
  const live = () => [
    shifted(queueJobs, ['runAt', 'createdAt', 'claimedAt']),
    ...(queue.keys === undefined ? [] : [shifted(queue.keys, ['until'], toCome('until'))]),
    ...(workflows === undefined
      ? []
      : [
          shifted(workflows.tables.queueSteps, ['until', 'startedAt', 'endedAt'], {
            live: sql`exists (select from ${queueJobs} as j where j.id = t.job_id and j.queue = t.queue)`,
          }),
          shifted(workflows.tables.queueBatches, ['createdAt', 'recountedAt', 'endedAt'], {
            live: sql`t.ended_at is null`,
          }),
        ]),
    ...(limits === undefined
      ? []
      : [
          shifted(limits.tables.queueHolds, ['until'], toCome('until')),
          shifted(limits.tables.queueNotes, ['dueAt'], toCome('due_at')),
        ]),
  ];
  const noRates = [sql`rate_used = '{}'`];
  const others = () => [
    shifted(queueResults, ['runAt', 'createdAt', 'claimedAt', 'finishedAt']),
    shifted(queuePauses, ['pausedAt']),
    ...(workflows === undefined ? [] : [shifted(workflows.tables.queueMailboxes, ['updatedAt'])]),
    ...(limits === undefined
      ? []
      : [
          shifted(limits.tables.queueGroups, ['readyAt', 'boundedSince'], { also: noRates }),
          shifted(limits.tables.queueUsage, [], { also: noRates }),
        ]),
  ];
  const times = ['passedAt', 'lastAt', 'startsAt', 'endsAt', 'pausedAt', 'createdAt'];
  const calendar = () =>
    schedules === undefined
      ? []
      : [
          shifted(schedules.tables.queueSchedules, times, {
            also: [
              sql`next_at = case when t.next_at is not null then t.passed_at - ${span} end`,
              sql`revision = t.revision + 1`,
            ],
          }),
        ];
  const all = () => [...live(), ...others(), ...calendar()];
  const updates = only === undefined ? all() : isLive ? live() : calendar();
  const ctes = updates.map((update, at) => sql`${sql.raw(`shifted_${at}`)} as (${update})`);
  const before = ctes.length === 0 ? sql`` : sql`with ${sql.join(ctes, sql`, `)} `;
  return sql`${before}select statement_timestamp()::text as at`;
}
