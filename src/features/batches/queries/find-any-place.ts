import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * A random number below one of the ids of a table: where a walk through it begins that may not last for the
 * whole table.
 *
 * **Under concurrency.** A plain read.
 */
export async function findAnyPlace(
  db: Runner,
  tables: TablesOfBatches,
  table: PgTable,
  id: PgColumn,
): Promise<number> {
  const [row] = await queryRows(db, tables, findAnyPlaceQuery(table, id), { entry: BATCHES_ENTRY });
  const [low, high] = [Number(row?.low ?? 0), Number(row?.high ?? 0)];
  return low - 1 + Math.floor(Math.random() * (high - low + 1));
}

/** By both ends of an index. */
export function findAnyPlaceQuery(table: PgTable, id: PgColumn): SQL {
  return sql`select min(${id})::float8 as low, max(${id})::float8 as high from ${table}`;
}
