import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

/** The id of the transaction of `tx`: the same in its savepoints, different on every other connection. */
export async function transactionId(tx: Executor, tables: QueueTables): Promise<string> {
  const [row] = await queryRows(tx, tables, transactionIdQuery);
  return String(row?.id);
}

export const transactionIdQuery: SQL = sql`select pg_current_xact_id()::text as id`;
