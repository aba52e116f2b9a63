import { type FleetWorker, WORKER_NAME } from './fleet.ts';
import type { Ledger } from './ledger.ts';

/** Ends the connections that listen and hold the workers' locks, of all workers or of one; answers how many. */
export async function terminateSessions(
  ledger: Ledger,
  { name }: Pick<FleetWorker, 'name'> = { name: `${WORKER_NAME}-%` },
): Promise<number> {
  const rows = await ledger.rows(
    `select pg_terminate_backend(pid) from pg_stat_activity as a
     where datname = current_database() and application_name like $1
       and (query ilike 'listen %' or exists (select from pg_locks as l where l.pid = a.pid and l.locktype = 'advisory'))`,
    [name],
  );
  return rows.length;
}
