import { readFileSync } from 'node:fs';
import type { Sql } from 'postgres';

/** What the server has done for the clients of one database. */
export interface Backends {
  readonly connections: number;
  /** Statements that were executed since the database was made. */
  readonly statements: number;
  /** Processor time of the connections that are open, in milliseconds; NaN where the system does not tell. */
  readonly cpuMs: number;
}

/** Settings of a server whose statements are to be counted. */
export const COUNTING = { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.max': 10_000 };

/** Of a database's clients, except the benches themselves; on a server with the settings of {@link COUNTING}. */
export async function readBackends(sql: Sql): Promise<Backends> {
  const pids = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and application_name <> 'bench' and backend_type = 'client backend' /* bench */`;
  return {
    connections: pids.length,
    statements: await countStatements(sql),
    cpuMs: pids.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0),
  };
}

/** Of a database since it was made, on a server with the settings of {@link COUNTING}. */
export async function countStatements(sql: Sql): Promise<number> {
  // The extension is created in the database that asks first, and tells of all. Our own statements are told by their comment.
  await sql`create extension if not exists pg_stat_statements /* bench */`;
  const [counted] = await sql<{ statements: number }[]>`
    select coalesce(sum(calls), 0)::float8 as statements from pg_stat_statements /* bench */
    where dbid = (select oid from pg_database where datname = current_database()) and query not like '%/* bench */%'
      and toplevel`;
  return counted?.statements ?? Number.NaN;
}

/** Ticks of the kernel's clock are hundredths of a second wherever Node.js runs on Linux. */
const TICK_MS = 10;

function cpuMsOf(pid: number): number {
  try {
    // After the name, which may contain anything and ends with the last bracket.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}
