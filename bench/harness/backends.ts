import { readFileSync } from 'node:fs';
import type { Sql } from 'postgres';

/** What the server has done for the clients of one database. */
export interface Backends {
  readonly connections: number;
  /** Transactions since the database was made; a statement outside any is one of its own. */
  readonly transactions: number;
  /** Processor time of the connections that are open, in milliseconds; NaN where the system does not tell. */
  readonly cpuMs: number;
}

/** Of a database's clients, except the benches themselves. */
export async function readBackends(sql: Sql): Promise<Backends> {
  const pids = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and application_name <> 'bench' and backend_type = 'client backend'`;
  const [counted] = await sql<{ transactions: number }[]>`
    select (xact_commit + xact_rollback)::float8 as transactions from pg_stat_database where datname = current_database()`;
  return {
    connections: pids.length,
    transactions: counted?.transactions ?? Number.NaN,
    cpuMs: pids.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0),
  };
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
