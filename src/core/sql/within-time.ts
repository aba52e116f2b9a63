import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { dateOf, epochMs } from './epoch-ms.ts';
import { type Database, type Executor, queryRows, sqlStateOf } from './executor.ts';
import { transact } from './transact.ts';

/** What `withinTime` runs its statements in. */
export interface TimedRunner {
  readonly runner: Executor;
  /** When it began, by the database's clock. */
  readonly startedAt: Date;
}

const QUERY_CANCELED = '57014';
const LOCK_NOT_AVAILABLE = '55P03';

export function limitTimeQuery(ms: number): SQL {
  return sql`
    select current_setting('statement_timeout') as timeout, ${epochMs('statement_timestamp()')} as started,
      current_setting('max_parallel_workers_per_gather') as helpers,
      set_config('statement_timeout', ${String(ms)}, true),
      set_config('max_parallel_workers_per_gather', '0', true)`;
}

export function restoreLimitsQuery(timeout: string, helpers: string): SQL {
  return sql`
    select set_config('statement_timeout', ${timeout}, true),
      set_config('max_parallel_workers_per_gather', ${helpers}, true)`;
}

/** Drizzle's databases and transactions of all drivers have one; some refuse the call. */
export function hasTransactions(db: Executor): db is Database {
  return typeof Reflect.get(db, 'transaction') === 'function';
}

/**
 * Runs statements in a transaction of their own, each for `ms` milliseconds of one processor at most. Returns
 * `undefined` when one took longer, waiting for locks included.
 *
 * **Under concurrency.** The limits are local to the transaction: the next user of the connection does not
 * get them.
 *
 * @param db a transaction runs them in a savepoint, and gets its own limits back
 * @param withoutLimit whether to run them on a driver that has no transactions, such as Neon's over HTTP
 */
export async function withinTime<T>(
  db: Database,
  tables: QueueTables,
  ms: number,
  run: (timed: TimedRunner) => Promise<T>,
  withoutLimit = true,
): Promise<T | undefined> {
  try {
    return await transact(db, async (tx) => {
      const [row] = await queryRows(tx, tables, limitTimeQuery(ms));
      const answer = await run({ runner: tx, startedAt: dateOf(row?.started) });
      if ('rollback' in db) {
        await queryRows(tx, tables, restoreLimitsQuery(String(row?.timeout), String(row?.helpers)));
      }
      return answer;
    });
  } catch (error) {
    const state = sqlStateOf(error);
    if (state === QUERY_CANCELED || state === LOCK_NOT_AVAILABLE) return undefined;
    if (!hasNoTransactions(error)) throw error;
    return withoutLimit ? await run({ runner: db, startedAt: new Date() }) : undefined;
  }
}

/** What Drizzle says for drivers that send one statement at a time. */
export function hasNoTransactions(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('No transactions support');
}
