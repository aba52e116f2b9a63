import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

/** What time it is by the database's clock, in the millisecond that has just begun. */
export async function databaseTime(db: Executor, tables: QueueTables): Promise<Date> {
  const [row] = await queryRows(db, tables, databaseTimeQuery);
  return dateOf(row?.now);
}

export const databaseTimeQuery: SQL = sql`select ${epochMs('statement_timestamp()')} as now`;
