import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import type { Bins } from '../job/histogram.ts';
import { type KnownMetrics, queryMetrics } from '../sql/metrics-tables.ts';
import { COUNTERS } from '../sql/summed-metrics.ts';

export type Counted = (typeof COUNTERS)[number];

/** What a worker did of one kind in one queue, since its last report. */
export interface MetricsRow extends Readonly<Record<Counted, number>> {
  /** The report that it is in, a number that the worker never uses again. */
  readonly report: number;
  readonly queue: string;
  readonly kind: string;
  readonly waitMs: number;
  readonly runMs: number;
  readonly wait: Bins;
  readonly run: Bins;
}

/**
 * Writes what a worker did, with the database's time.
 *
 * **Under concurrency.** Each worker writes its own rows, so workers never wait for each other. Rows that
 * exist already were written by an attempt whose answer was lost. They are left as they are, so nothing
 * counts twice.
 */
export async function reportMetrics(
  db: Runner,
  known: KnownMetrics,
  workerId: number,
  rows: readonly MetricsRow[],
): Promise<void> {
  await queryMetrics(db, known, reportMetricsQuery(known, workerId, rows));
}

export function reportMetricsQuery(
  { metrics }: KnownMetrics,
  workerId: number,
  rows: readonly MetricsRow[],
): SQL {
  const counters = sql.raw(COUNTERS.join(', '));
  const given = rows.map(({ waitMs, runMs, ...row }) => ({
    ...row,
    wait_ms: Math.round(waitMs),
    run_ms: Math.round(runMs),
  }));
  return sql`
    insert into ${metrics} (worker_id, report, queue, kind, at, minutes, wait_ms, run_ms, ${counters},
      wait, run)
    select ${workerId}::int8, r.report, r.queue, r.kind, statement_timestamp(), 1, r.wait_ms, r.run_ms,
      ${sql.raw(COUNTERS.map((name) => `r.${name}`).join(', '))}, r.wait, r.run
    from jsonb_to_recordset(${JSON.stringify(given)}::text::jsonb)
      as r(report int8, queue text, kind text, wait_ms int8, run_ms int8,
        ${sql.raw(COUNTERS.map((name) => `${name} int4`).join(', '))}, wait jsonb, run jsonb)
    on conflict do nothing`;
}
