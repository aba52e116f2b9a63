import { type SQL, sql } from 'drizzle-orm';
import { epochMs } from './epoch-ms.ts';
import type { Database, Executor } from './executor.ts';

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

/** What Drizzle says for drivers that send one statement at a time. */
const NO_TRANSACTIONS =
  /^(No (interactive )?transactions support|Transactions are not supported|Method not implemented)/;

export function hasNoTransactions(error: unknown): boolean {
  return error instanceof Error && NO_TRANSACTIONS.test(error.message);
}
