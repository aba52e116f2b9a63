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
  /** `calendar`: schedules alone; `jobs`: all but these. @default undefined all of it */
  readonly only?: 'jobs' | 'calendar' | undefined;
}

/**
 * Moves the times in a queue's tables back, so that the database's clock is later for them. The caller must
 * find a schedule's next tick again, since a cron expression does not move. Rates are as if nothing had
 * started.
 *
 * **Under concurrency.** Waits for other transactions that write the same rows. No other transaction can
 * write rows that only this transaction has written.
 */
export async function shiftTimes(db: Executor, queue: Queue, shift: Shift): Promise<void> {
  await queryRows(db, queue.tables, shiftTimesQuery(queue, shift));
}

export function shiftTimesQuery(queue: Queue, { ms, written, only }: Shift): SQL {
  const { queueJobs, queueResults, queuePauses } = queue.tables;
  // `createQueue` has put them there, or nothing.
  const schedules = queue.schedules as Schedules | undefined;
  const limits = queue.limits as Limits | undefined;
  const workflows = queue.workflows as Workflows | undefined;
  const span = sql`${ms}::float8 * interval '1 millisecond'`;
  const where = written ? writtenHere('t') : sql`true`;
  const shifted = (table: PgTable, keys: readonly string[], also: readonly SQL[] = []) => {
    const columns = getTableColumns(table);
    const times = keys.map((key) => {
      const name = sql.identifier(columns[key]?.name ?? key);
      return sql`${name} = t.${name} - ${span}`;
    });
    return sql`update ${table} as t set ${sql.join([...times, ...also], sql`, `)} where ${where}`;
  };
  const noRates = sql`rate_used = '{}'`;
  const jobs = () => [
    shifted(queueJobs, ['runAt', 'createdAt', 'claimedAt']),
    shifted(queueResults, ['runAt', 'createdAt', 'claimedAt', 'finishedAt']),
    shifted(queuePauses, ['pausedAt']),
    ...(queue.keys === undefined ? [] : [shifted(queue.keys, ['until'])]),
    ...(workflows === undefined
      ? []
      : [
          shifted(workflows.tables.queueSteps, ['until', 'startedAt', 'endedAt']),
          shifted(workflows.tables.queueMailboxes, ['updatedAt']),
          shifted(workflows.tables.queueBatches, ['createdAt', 'recountedAt', 'endedAt']),
        ]),
    ...(limits === undefined
      ? []
      : [
          shifted(limits.tables.queueHolds, ['until']),
          shifted(limits.tables.queueNotes, ['dueAt']),
          shifted(limits.tables.queueGroups, ['readyAt', 'boundedSince'], [noRates]),
          shifted(limits.tables.queueUsage, [], [noRates]),
        ]),
  ];
  const times = ['passedAt', 'lastAt', 'startsAt', 'endsAt', 'pausedAt', 'createdAt'];
  const calendar = () =>
    schedules === undefined
      ? []
      : [
          shifted(schedules.tables.queueSchedules, times, [
            sql`next_at = case when t.next_at is not null then t.passed_at - ${span} end`,
            sql`revision = t.revision + 1`,
          ]),
        ];
  const updates = [...(only === 'calendar' ? [] : jobs()), ...(only === 'jobs' ? [] : calendar())];
  const ctes = updates.map((update, at) => sql`${sql.raw(`shifted_${at}`)} as (${update})`);
  return ctes.length === 0 ? sql`select 1` : sql`with ${sql.join(ctes, sql`, `)} select 1`;
}
