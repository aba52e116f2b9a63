import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import type { Executor, RawRow } from '../../../core/sql/executor.ts';
import type { StoredLimit } from '../settings/limit-record.ts';
import { type GroupPage, type LeaseTables, queryLimitRows } from '../sql/limit-tables.ts';

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

/** The limits that were set at run time for a queue, its kinds, and every group of it. A plain read. */
export async function findLimits(db: Executor, tables: LeaseTables, queue: string): Promise<StoredLimit[]> {
  return (await queryLimitRows(db, tables, findLimitsQuery(tables, queue))).map(toStoredLimit);
}

export function findLimitsQuery({ queueLimits }: LeaseTables, queue: string): SQL {
  return sql`
    select ${limitColumns} from ${queueLimits} as s where s.queue = ${queue} and s.group_key in ('', '*')`;
}

/** Those that were set for single groups, by the group's name. A plain read. */
export async function findGroupLimits(
  db: Executor,
  tables: LeaseTables,
  page: GroupPage,
): Promise<StoredLimit[]> {
  return (await queryLimitRows(db, tables, findGroupLimitsQuery(tables, page))).map(toStoredLimit);
}

export function findGroupLimitsQuery({ queueLimits }: LeaseTables, { queue, after, limit }: GroupPage): SQL {
  return sql`
    select ${limitColumns} from ${queueLimits} as s
    where s.queue = ${queue} and s.kind = '' and s.group_key > ${after} and s.group_key <> '*'
    order by s.group_key limit ${limit}`;
}
