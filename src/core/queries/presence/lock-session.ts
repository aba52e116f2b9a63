import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { sessionKey } from '../../sql/session-key.ts';
import { thisNode } from '../../sql/this-node.ts';

/** The server notices a vanished host within 15 seconds instead of two hours, and then frees its lock. */
const KEEPALIVES = {
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '10000',
} as const;

export interface HeldSession {
  readonly pid: number;
  readonly node: string;
}

/**
 * Takes a worker's session lock on the connection of `runner`, which holds it until it ends, and makes the
 * server watch that connection. Returns the backend's process id and node, or `undefined` without the lock.
 *
 * Only for a connection that belongs to one client as long as it lasts: behind a pooler in transaction mode
 * the lock would stay on a connection that others get next.
 *
 * **Under concurrency.** Never waits: `undefined` says that a peer is testing the lock, or that the server
 * still holds a lost connection of this worker. Try again.
 */
export async function lockSession(
  runner: Runner,
  tables: QueueTables,
  workerId: number,
): Promise<HeldSession | undefined> {
  const [row] = await queryRows(runner, tables, lockSessionQuery(tables, workerId));
  return row?.locked === true ? { pid: Number(row.pid), node: String(row.node) } : undefined;
}

export function lockSessionQuery(tables: QueueTables, workerId: number): SQL {
  const settings = Object.entries(KEEPALIVES).map(
    ([name, value]) => sql`set_config(${name}, ${value}, false)`,
  );
  return sql`
    select pg_try_advisory_lock(${sessionKey(tables, sql`${workerId}::int8`)}) as locked,
      pg_backend_pid() as pid, ${thisNode(tables)} as node, ${sql.join(settings, sql`, `)}`;
}
