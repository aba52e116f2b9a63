import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, jsonb, type pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  BooleanColumn,
  InSchema,
  JsonColumn,
  NotNull,
  Primary,
  TextColumn,
  TextColumnOf,
  TimestampColumn,
  WithDefault,
} from '../../core/schema/column-types.ts';
import type { DeclareTable } from '../../core/schema/declare-table.ts';

/**
 * What happens to ticks that were not fired in time, because no worker ran or the schedule was paused.
 * `latest`: the newest one fires. `all`: each fires, in order, the newest 1,000. `none`: they are skipped,
 * except for a tick that is less than a minute late.
 */
export type CatchUp = 'latest' | 'all' | 'none';

/** What each job of a schedule is enqueued with, beside queue, kind and payload. */
export interface TickSettings {
  readonly priority: number;
  readonly maxAttempts: number;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The values of the app's own columns as texts, by name; those that are left out get their defaults. */
  readonly own: Readonly<Record<string, string | null>>;
  /** Where the queue has groups: that of its jobs, unless they have none of their own. */
  readonly group?: string;
  /** What each of them counts for in rates; 1 where it is left out. */
  readonly cost?: number;
}

/** The columns of `queue_schedules`. */
export type ScheduleColumns = {
  name: Primary<TextColumn>;
  queue: NotNull<TextColumn>;
  kind: NotNull<TextColumn>;
  payload: NotNull<JsonColumn>;
  settings: NotNull<JsonColumn<TickSettings>>;
  cron: TextColumn;
  everyMs: BigintColumn;
  timeZone: NotNull<TextColumn>;
  catchUp: NotNull<TextColumnOf<CatchUp>>;
  overlap: NotNull<BooleanColumn>;
  startsAt: TimestampColumn;
  endsAt: TimestampColumn;
  nextAt: TimestampColumn;
  passedAt: NotNull<TimestampColumn>;
  lastAt: TimestampColumn;
  pausedAt: TimestampColumn;
  revision: WithDefault<NotNull<BigintColumn>>;
  declaredBy: BigintColumn;
  seenAt: NotNull<TimestampColumn>;
  createdAt: NotNull<TimestampColumn>;
};

/** `queue_schedules` under any name. */
export type SchedulesTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, ScheduleColumns>>, TSchema>;

/**
 * `queue_schedules`: what is enqueued again and again, and when. The row is the memory of a schedule:
 * whatever becomes of its jobs, a tick that it has passed does not fire again.
 *
 * - `passed_at`: ticks until then have fired or passed. `next_at`: the next tick; equal to `passed_at` until
 *   a worker has computed it; null when none will come.
 * - `revision` is raised by each change and each firing: a writer that has read another one changes nothing.
 *   It begins at the time of the insert, so that a schedule which was removed and set again has none twice.
 * - `declared_by`: the worker that has written a schedule declared in code; null for one that was set.
 *   `seen_at`: when a worker last declared it.
 */
export function defineSchedulesTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): SchedulesTable<TName, TSchema> {
  const time = (column: string) => timestamp(column, { withTimezone: true });
  const schedules = table(
    name,
    {
      name: text('name').primaryKey(),
      queue: text('queue').notNull(),
      kind: text('kind').notNull(),
      payload: jsonb('payload').notNull(),
      settings: jsonb('settings').$type<TickSettings>().notNull(),
      cron: text('cron'),
      everyMs: bigint('every_ms', { mode: 'number' }),
      timeZone: text('time_zone').notNull(),
      catchUp: text('catch_up').$type<CatchUp>().notNull(),
      overlap: boolean('overlap').notNull(),
      startsAt: time('starts_at'),
      endsAt: time('ends_at'),
      nextAt: time('next_at'),
      passedAt: time('passed_at').notNull(),
      lastAt: time('last_at'),
      pausedAt: time('paused_at'),
      revision: bigint('revision', { mode: 'number' }).notNull().default(0),
      declaredBy: bigint('declared_by', { mode: 'number' }),
      seenAt: time('seen_at').notNull(),
      createdAt: time('created_at').notNull(),
    },
    (t) => [
      index(`${name}_next_at_idx`).on(t.nextAt).where(sql`paused_at is null`),
      check(`${name}_timing_check`, sql`num_nonnulls(cron, every_ms) = 1`),
    ],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return schedules as unknown as SchedulesTable<TName, TSchema>;
}
