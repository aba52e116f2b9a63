import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Band } from '../../sql/claim-order.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { isFree } from '../../sql/is-free.ts';
import { planAnew } from '../../sql/plan-anew.ts';
import { isNotAmong, servedKind } from '../../sql/served-kind.ts';
import { throughIndex } from '../../sql/through-index.ts';
import { timestampText } from '../../sql/timestamp-text.ts';

/** Which due jobs a claim that was refused may have met. */
export interface DueIdsQuestion {
  readonly queue: string;
  readonly kinds: readonly string[];
  readonly limit: number;
  /** Leaves these out. */
  readonly without: readonly number[];
}

/**
 * The ids of the next due jobs in the bands, in the order of a claim.
 *
 * **Under concurrency.** A plain read. Rows that a transaction has locked are among them.
 */
export async function findDueIds(
  db: Runner,
  tables: QueueTables,
  question: DueIdsQuestion & { readonly bands: readonly Band[] },
): Promise<number[]> {
  const rows = await queryRows(db, tables, findDueIdsQuery(tables, question));
  return rows.map(({ id }) => Number(id));
}

export function findDueIdsQuery(
  tables: QueueTables,
  { queue, kinds, limit, without, bands }: DueIdsQuestion & { readonly bands: readonly Band[] },
): SQL {
  const places = JSON.stringify(
    bands.map(({ priority, floorMs, ceilingMs }) => ({
      priority,
      floor: timestampText(floorMs),
      ceiling: ceilingMs === undefined ? 'infinity' : timestampText(ceilingMs),
    })),
  );
  return sql`
    select j.id from ${planAnew()}
    cross join jsonb_to_recordset(${places}::text::jsonb)
      as band(priority int2, floor timestamptz, ceiling timestamptz)
    cross join lateral (
      select j.id from ${tables.queueJobs} as j
      where j.queue = ${queue} and j.priority = band.priority and ${throughIndex(sql`j.group_key is null`)}
        and j.run_at >= band.floor and j.run_at <= statement_timestamp() and j.run_at < band.ceiling
        and ${isFree(tables)} and ${servedKind(kinds)}
        and ${isNotAmong(arrayText(without))}
      order by j.run_at, j.id limit (select ${limit}::int8)
    ) as j
    limit ${limit}`;
}
