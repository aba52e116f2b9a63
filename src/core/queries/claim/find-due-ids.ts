import { type SQL, sql } from 'drizzle-orm';
import { isFree } from '../../../features/limits/sql/group-hold.ts';
import type { GroupTables } from '../../../features/limits/sql/grouping.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Band } from '../../sql/claim-order.ts';
import { CONTROL_ENTRY } from '../../sql/control-entry.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { planAnew } from '../../sql/plan-anew.ts';
import { isNotAmong, servedKind } from '../../sql/served-kind.ts';

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

/**
 * The ids of due jobs of the groups whose turn it is, and of groups that are new.
 *
 * **Under concurrency.** A plain read, as {@link findDueIds}.
 */
export async function findGroupedDueIds(
  db: Runner,
  tables: GroupTables,
  question: DueIdsQuestion,
): Promise<number[]> {
  const query = findGroupedDueIdsQuery(tables, question);
  const rows = await queryRows(db, tables, query, { entry: CONTROL_ENTRY });
  return rows.map(({ id }) => Number(id));
}

export function findDueIdsQuery(
  tables: QueueTables,
  { queue, kinds, limit, without, bands }: DueIdsQuestion & { readonly bands: readonly Band[] },
): SQL {
  const places = JSON.stringify(
    bands.map(({ priority, floorMs, ceilingMs }) => ({
      priority,
      floor: Number.isFinite(floorMs) ? new Date(floorMs).toISOString() : '-infinity',
      ceiling: ceilingMs === undefined ? 'infinity' : new Date(ceilingMs).toISOString(),
    })),
  );
  return sql`
    select j.id from ${planAnew()}
    cross join jsonb_to_recordset(${places}::text::jsonb)
      as band(priority int2, floor timestamptz, ceiling timestamptz)
    cross join lateral (
      select j.id from ${tables.queueJobs} as j
      where j.queue = ${queue} and j.priority = band.priority and j.group_key is null
        and j.run_at >= band.floor and j.run_at <= statement_timestamp() and j.run_at < band.ceiling
        and ${isFree(tables)} and ${servedKind(kinds)}
        and ${isNotAmong(arrayText(without))}
      order by j.run_at, j.id limit (select ${limit}::int8)
    ) as j
    limit ${limit}`;
}

/** The claim looks at as many groups as this, and at the first jobs of each. */
export function findGroupedDueIdsQuery(
  tables: GroupTables,
  { queue, kinds, limit, without }: DueIdsQuestion,
): SQL {
  const { queueJobs, queueGroups, queueNotes } = tables;
  return sql`
    select j.id from (
      (
        select g.group_key from ${queueGroups} as g
        where g.queue = ${queue} and g.turn >= 0 and g.ready_at <= statement_timestamp()
        order by g.ready_at, g.turn limit ${limit}::int8 * 2 + 32
      )
      union
      (
        select unnest(n.group_keys) from ${queueNotes} as n
        where n.queue = ${queue} and n.due_at <= statement_timestamp()
        limit ${limit}::int8 * 2 + 32
      )
    ) as g
    cross join lateral (
      select j.id from ${queueJobs} as j
      where j.queue = ${queue} and j.group_key = g.group_key and j.group_key is not null
        and j.run_at <= statement_timestamp() and ${isFree(tables)} and ${servedKind(kinds)}
        and ${isNotAmong(arrayText(without))}
      order by j.priority, j.run_at, j.id limit ${limit}
    ) as j
    limit ${limit}::int8 * 4`;
}
