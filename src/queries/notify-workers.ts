import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { wakeChannel } from '../sql/wake-channel.ts';

/** Notifies all workers of these tables when the transaction commits. */
export async function notifyWorkers(db: Executor, tables: QueueTables, payload: string): Promise<void> {
  await queryRows(db, tables, notifyWorkersQuery(tables, payload));
}

export function notifyWorkersQuery(tables: QueueTables, payload: string): SQL {
  return sql`select pg_notify(${wakeChannel(tables)}, ${payload})`;
}
