import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../../core/sql/executor.ts';
import type { StoredLimit } from '../settings/limit-record.ts';
import { limitColumns, toStoredLimit } from '../sql/limit-row.ts';
import { type GroupPage, type LeaseTables, queryLimitRows } from '../sql/limit-tables.ts';

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
