import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import type { RawRow } from '../../../core/sql/executor.ts';
import type { LimitRow } from '../settings/limit-record.ts';

/** The columns of `queue_limits as s` that {@link toLimitRow} reads. */
export const limitColumns: SQL = sql`s.queue, s.kind, s.group_key, s.concurrency::float8 as concurrency,
      s.rate_limit::float8 as rate_limit, s.rate_per_ms::float8 as rate_per_ms, s.weight::float8 as weight,
      ${epochMs('s.updated_at')} as updated_at`;

export function toLimitRow(row: RawRow): LimitRow {
  return {
    queue: String(row.queue),
    kind: String(row.kind),
    group: String(row.group_key),
    concurrency: numberOrNull(row.concurrency),
    rateLimit: numberOrNull(row.rate_limit),
    ratePerMs: numberOrNull(row.rate_per_ms),
    weight: numberOrNull(row.weight),
    updatedAtMs: dateOf(row.updated_at).getTime(),
  };
}

function numberOrNull(value: unknown): number | null {
  return value === null ? null : Number(value);
}
