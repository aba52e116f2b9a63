import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { BRIEFLY } from '../../../core/sql/row-locks.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** How long it waits in a hurry, for a row that another statement is just writing. */
const IN_A_HURRY = '2ms';

/**
 * Runs statements that wait for no lock longer than `briefly`, in a savepoint of a transaction of the app's,
 * and from `hurry` on hardly at all. That transaction waits afterwards for as long as before. Where one of
 * them fails, the end of the savepoint sees to it.
 */
export async function withBriefLocks<T>(
  savepoint: Executor,
  tables: TablesOfBatches,
  run: (hurry: () => Promise<unknown>) => Promise<T>,
): Promise<T> {
  const former = await setLockTimeout(savepoint, tables, BRIEFLY);
  const answer = await run(() => setLockTimeout(savepoint, tables, IN_A_HURRY));
  await setLockTimeout(savepoint, tables, former);
  return answer;
}

/** For the rest of the transaction; returns what it was. */
async function setLockTimeout(tx: Executor, tables: TablesOfBatches, timeout: string): Promise<string> {
  const [row] = await queryRows(tx, tables, setLockTimeoutQuery(timeout), { entry: BATCHES_ENTRY });
  return String(row?.former);
}

export function setLockTimeoutQuery(timeout: string): SQL {
  return sql`
    with before as materialized (select current_setting('lock_timeout') as former)
    select former, set_config('lock_timeout', ${timeout}::text, true) as set from before`;
}
