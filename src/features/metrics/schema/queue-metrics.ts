import {
  bigint,
  index,
  integer,
  jsonb,
  type pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';
import type {
  BigintColumn,
  InSchema,
  IntegerColumn,
  JsonColumn,
  NotNull,
  SmallintColumn,
  TextColumn,
  TimestampColumn,
  WithDefault,
} from '../../../core/schema/column-types.ts';
import type { DeclareTable } from '../../../core/schema/declare-table.ts';

/** How many durations there are of each size: those of the bin `b` take about `√2 ** b` milliseconds. */
export type Histogram = Readonly<Record<string, number>>;

/** The columns of `queue_metrics`. */
export type MetricColumns = {
  workerId: NotNull<BigintColumn>;
  report: NotNull<BigintColumn>;
  queue: NotNull<TextColumn>;
  kind: NotNull<TextColumn>;
  at: NotNull<TimestampColumn>;
  minutes: NotNull<SmallintColumn>;
  completed: WithDefault<NotNull<IntegerColumn>>;
  retried: WithDefault<NotNull<IntegerColumn>>;
  discarded: WithDefault<NotNull<IntegerColumn>>;
  cancelled: WithDefault<NotNull<IntegerColumn>>;
  snoozed: WithDefault<NotNull<IntegerColumn>>;
  interrupted: WithDefault<NotNull<IntegerColumn>>;
  lost: WithDefault<NotNull<IntegerColumn>>;
  waitMs: WithDefault<NotNull<BigintColumn>>;
  runMs: WithDefault<NotNull<BigintColumn>>;
  wait: WithDefault<NotNull<JsonColumn<Histogram>>>;
  run: WithDefault<NotNull<JsonColumn<Histogram>>>;
};

/** `queue_metrics` under any name. */
export type MetricsTable<
  TName extends string = string,
  TSchema extends string | undefined = string | undefined,
> = InSchema<ReturnType<typeof pgTable<TName, MetricColumns>>, TSchema>;

/**
 * `queue_metrics`: what workers did, one row per report, queue and kind. Rows are only inserted and pruned,
 * so nothing waits for another's row, and nothing bloats.
 *
 * - `worker_id` and `report` name a report; one that is sent twice, because an answer was lost, counts once.
 * - `at`: when it was written, with `minutes` 1: a worker reports about once a minute what ended since. Rows
 *   of the worker 0 are of a whole hour, which begins `at`, with `minutes` 60: the sum of the others.
 * - `wait` and `run`: {@link Histogram}s of the time from due to begun, and from begun to ended; `wait_ms`
 *   and `run_ms` are their sums.
 */
export function defineMetricsTable<TName extends string, TSchema extends string | undefined>(
  table: DeclareTable,
  name: TName,
): MetricsTable<TName, TSchema> {
  const metrics = table(
    name,
    {
      workerId: bigint('worker_id', { mode: 'number' }).notNull(),
      report: bigint('report', { mode: 'number' }).notNull(),
      at: timestamp('at', { withTimezone: true }).notNull(),
      waitMs: bigint('wait_ms', { mode: 'number' }).notNull().default(0),
      runMs: bigint('run_ms', { mode: 'number' }).notNull().default(0),
      completed: integer('completed').notNull().default(0),
      retried: integer('retried').notNull().default(0),
      discarded: integer('discarded').notNull().default(0),
      cancelled: integer('cancelled').notNull().default(0),
      snoozed: integer('snoozed').notNull().default(0),
      interrupted: integer('interrupted').notNull().default(0),
      lost: integer('lost').notNull().default(0),
      minutes: smallint('minutes').notNull(),
      queue: text('queue').notNull(),
      kind: text('kind').notNull(),
      wait: jsonb('wait').$type<Histogram>().notNull().default({}),
      run: jsonb('run').$type<Histogram>().notNull().default({}),
    },
    (t) => [
      primaryKey({ name: `${name}_pkey`, columns: [t.workerId, t.report, t.queue, t.kind] }),
      // Minutes and hours are read and pruned apart.
      index(`${name}_at_idx`).on(t.minutes, t.at),
    ],
  );
  // The builders above declare these columns, through the reader's own drizzle-orm.
  return metrics as unknown as MetricsTable<TName, TSchema>;
}
