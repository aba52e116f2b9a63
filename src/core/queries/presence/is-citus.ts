import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

export async function isCitus(db: Executor, tables: QueueTables): Promise<boolean> {
  const [row] = await queryRows(db, tables, isCitusQuery);
  return row?.citus === true;
}

export const hasCitus: SQL = sql`exists (select from pg_extension where extname = 'citus')`;

export const isCitusQuery: SQL = sql`select ${hasCitus} as citus`;
