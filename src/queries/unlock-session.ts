import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import { sessionKey } from '../sql/session-key.ts';

/** Gives a worker's session lock back, on the connection that holds it: the connection may be used for other things after it. */
export async function unlockSession(runner: Runner, tables: QueueTables, workerId: number): Promise<void> {
  await queryRows(runner, tables, unlockSessionQuery(tables, workerId));
}

export function unlockSessionQuery(tables: QueueTables, workerId: number): SQL {
  return sql`select pg_advisory_unlock(${sessionKey(tables, sql`${workerId}::int8`)})`;
}
