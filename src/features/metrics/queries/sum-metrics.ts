import { type SQL, sql } from 'drizzle-orm';
import { dateOf } from '../../../core/sql/epoch-ms.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import type { Bins } from '../job/histogram.ts';
import { type KnownMetrics, queryMetrics } from '../sql/metrics-tables.ts';
import { COUNTERS, summedMetrics } from '../sql/summed-metrics.ts';
import { folded } from './fold-metrics.ts';
import type { Counted } from './report-metrics.ts';

/** What all workers did of one kind in one queue, in one minute or hour. */
export interface SummedMetrics extends Readonly<Record<Counted, number>> {
  readonly at: Date;
  readonly queue: string;
  readonly kind: string;
  readonly waitMs: number;
  readonly runMs: number;
  readonly wait: Bins;
  readonly run: Bins;
  /** By hour: how many minutes all steps together cover, up to the statement. */
  readonly coveredMinutes?: number;
}

/**
 * What workers did in the last `minutes`, by minute, or with `hourly` by hour, by queue and kind. An hour
 * that has been added up can only be had whole, so by hour it begins with the whole hour that they begin in.
 *
 * **Under concurrency.** A plain read of one snapshot. An hour comes from its folded rows or from its
 * reports, never from both: one statement folds it.
 */
export async function sumMetrics(
  db: Runner,
  known: KnownMetrics,
  minutes: number,
  hourly: boolean,
): Promise<SummedMetrics[]> {
  const rows = await queryMetrics(db, known, sumMetricsQuery(known, minutes, hourly));
  return rows.map((row) => ({
    at: dateOf(Number(row.step) * 1_000),
    queue: String(row.queue),
    kind: String(row.kind),
    completed: Number(row.completed),
    retried: Number(row.retried),
    discarded: Number(row.discarded),
    cancelled: Number(row.cancelled),
    snoozed: Number(row.snoozed),
    interrupted: Number(row.interrupted),
    lost: Number(row.lost),
    waitMs: Number(row.wait_ms),
    runMs: Number(row.run_ms),
    // Only workers write the two, in this shape.
    wait: row.wait as Bins,
    run: row.run as Bins,
    ...(hourly && { coveredMinutes: Number(row.covered_minutes) }),
  }));
}

export function sumMetricsQuery({ metrics }: KnownMetrics, minutes: number, hourly: boolean): SQL {
  const seconds = sql.raw(hourly ? '3600' : '60');
  const minutesAgo = sql`statement_timestamp() - ${minutes}::float8 * interval '1 minute'`;
  const hour = sql`floor(date_part('epoch', ${minutesAgo}) / 3600) * 3600`;
  const since = hourly ? sql`to_timestamp(${hour})` : minutesAgo;
  const covered = hourly
    ? sql`, (date_part('epoch', statement_timestamp()) - ${hour}) / 60 as covered_minutes`
    : sql``;
  const rows = hourly
    ? sql`(m.minutes = 60 and m.at >= ${since} and m.at < to_timestamp(${folded(metrics)}))
        or (m.minutes = 1 and m.at >= ${since} and m.at >= to_timestamp(${folded(metrics)}))`
    : // Reports of a clock that was ahead are none of the last minutes.
      sql`m.minutes = 1 and m.at >= ${since} and m.at <= statement_timestamp()`;
  return sql`
    with part as materialized (
      select (floor(date_part('epoch', m.at) / ${seconds}) * ${seconds})::int8 as step, m.*
      from ${metrics} as m
      where ${rows}
    ),
    ${summedMetrics()}
    select s.step::float8, s.queue, s.kind, s.wait, s.run, s.wait_ms::float8, s.run_ms::float8,
      ${sql.raw(COUNTERS.map((name) => `s.${name}::float8`).join(', '))}${covered}
    from summed as s order by s.step, s.queue, s.kind`;
}
