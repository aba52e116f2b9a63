import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { wakeChannel } from '../../sql/wake-channel.ts';

/**
 * Notifies all workers of these tables when the transaction commits.
 *
 * A statement by itself wherever no `INSERT` goes before it: Citus sends a change together with what stands
 * around it to the node of the rows, and a notification is heard only on the node that sends it.
 */
export async function notifyWorkers(
  db: Runner,
  tables: QueueTables,
  payload: string,
  channel: string = wakeChannel(tables),
): Promise<void> {
  await queryRows(db, tables, notifyWorkersQuery(channel, payload));
}

export function notifyWorkersQuery(channel: string, payload: string): SQL {
  return sql`select pg_notify(${channel}, ${payload})`;
}
