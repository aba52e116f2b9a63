import { sql } from 'drizzle-orm';
import { citusCluster } from '../../support/citus.ts';
import type { Connection, UsedTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

/** A single connection whose waiting others can watch. */
export interface Backend extends Connection {
  readonly pid: number;
}

/** Two connections besides the pool of the test's database. */
export async function twoBackends(database: UsedTestDatabase): Promise<readonly [Backend, Backend]> {
  return [await backend(database), await backend(database)];
}

async function backend(database: UsedTestDatabase): Promise<Backend> {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('no connection');
  const [row] = await connection.client<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return { ...connection, pid: Number(row?.pid) };
}

/** Resolves when `waiting` waits for a lock that another connection holds. */
export async function untilBlocked({ client }: Connection, waiting: Backend): Promise<void> {
  // On a cluster it may wait on another node, under a number whose last ten digits are the process id here.
  const elsewhere =
    citusCluster() === undefined
      ? client`false`
      : client`exists (select from citus_lock_waits where waiting_gpid % 10000000000 = ${waiting.pid})`;
  await until(async () => {
    const [row] = await client<{ blocked: boolean }[]>`
      select cardinality(pg_blocking_pids(${waiting.pid})) > 0 or ${elsewhere} as blocked`;
    return row?.blocked;
  });
}

/** The process ids of connections of this database that wait for a lock with a statement in which a text occurs. */
export async function waitingFor(client: Connection['client'], text: string): Promise<number[]> {
  const pattern = `%${text}%`;
  // On a cluster it may wait on another node.
  const elsewhere =
    citusCluster() === undefined
      ? client``
      : client`
        union select (waiting_gpid % 10000000000)::int4 from citus_lock_waits
        where blocked_statement like ${pattern}`;
  const rows = await client<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like ${pattern} ${elsewhere}`;
  return rows.map(({ pid }) => pid);
}

export type IsolationLevel = 'read committed' | 'repeatable read' | 'serializable';

/** Begins a transaction on a single connection; the test ends it. */
export async function begin({ db }: Backend, level: IsolationLevel = 'read committed'): Promise<void> {
  await db.execute(sql.raw(`begin isolation level ${level}`));
}

export async function commit({ db }: Backend): Promise<void> {
  await db.execute(sql`commit`);
}

export async function rollback({ db }: Backend): Promise<void> {
  await db.execute(sql`rollback`);
}
