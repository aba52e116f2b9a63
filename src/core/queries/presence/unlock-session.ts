import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { sessionKey } from '../../sql/session-key.ts';

/** Releases a worker's session lock, so that the connection that held it can be used for other things. */
export async function unlockSession(runner: Runner, tables: QueueTables, workerId: number): Promise<void> {
  await queryRows(runner, tables, unlockSessionQuery(tables, workerId));
}

export function unlockSessionQuery(tables: QueueTables, workerId: number): SQL {
  return sql`select pg_advisory_unlock(${sessionKey(tables, sql`${workerId}::int8`)})`;
}
