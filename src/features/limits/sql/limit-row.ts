import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import type { RawRow } from '../../../core/sql/executor.ts';
import type { StoredLimit } from '../settings/limit-record.ts';

/** The columns of `queue_limits as s` that {@link toStoredLimit} reads. */
export const limitColumns: SQL = sql`s.kind, s.group_key, s.concurrency::float8 as concurrency,
      s.rate_limit::float8 as rate_limit, s.rate_per_ms::float8 as rate_per_ms, s.weight::float8 as weight,
      ${epochMs('s.updated_at')} as updated_at`;

export function toStoredLimit(row: RawRow): StoredLimit {
  const { concurrency, rate_limit: limit, rate_per_ms: perMs, weight } = row;
  return {
    kind: String(row.kind),
    group: String(row.group_key),
    override: {
      ...(concurrency !== null && { concurrency: Number(concurrency) }),
      ...(limit !== null && perMs !== null && { rate: { limit: Number(limit), perMs: Number(perMs) } }),
      ...(weight !== null && { weight: Number(weight) }),
    },
    setAt: dateOf(row.updated_at),
  };
}
