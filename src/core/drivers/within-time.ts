import { QueueError } from '../../errors.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { dateOf } from '../sql/epoch-ms.ts';
import {
  type Database,
  type Executor,
  queryRows,
  sqlStateOf,
  type Transaction,
  type TransactionSettings,
} from '../sql/executor.ts';
import { hasNoTransactions, limitTimeQuery, restoreLimitsQuery } from '../sql/limit-time.ts';
import { transact } from '../sql/transact.ts';
import { settlesWithin } from '../time/resolves-within.ts';
import { transactionUntil } from './transaction-until.ts';

export interface TimedRunner {
  readonly runner: Executor;
  /** When its first statement began, by the database's clock; `undefined` where there are no transactions. */
  readonly startedAt: Date | undefined;
}

/** Options of {@link withinTime}. */
export interface TimeOptions {
  /** Whether to run on a driver that has no transactions, such as Neon's over HTTP. @default true */
  readonly withoutLimit?: boolean;
  readonly settings?: TransactionSettings;
}

/** What an answer may take beyond its time: a connection of the pool may be long in coming. */
const SILENCE_MS = 30_000;
const QUERY_CANCELED = '57014';
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Runs statements in a transaction of their own, each for `ms` milliseconds of one processor at most. Returns
 * `undefined` when one took longer, waiting for locks included.
 *
 * **Under concurrency.** The limits are local to the transaction: the next user of the connection does not
 * get them. A connection that a firewall has forgotten answers never, and the limits do not help: it is given
 * up, so that those who share the answer can ask anew. From then on nothing is sent, whatever is answered
 * late: the connection of an app's transaction may serve another by then.
 *
 * @throws QueueError when an answer has not come 30 seconds after its time
 * @param db a transaction runs them in a savepoint, and gets its own limits back
 */
export async function withinTime<T>(
  db: Database,
  tables: QueueTables,
  ms: number,
  run: (timed: TimedRunner) => Promise<T>,
  { withoutLimit = true, settings }: TimeOptions = {},
): Promise<T | undefined> {
  const patience = new Patience(ms + SILENCE_MS);
  try {
    return await patience.transact(
      db,
      async (tx) => {
        const [row] = await queryRows(tx, tables, limitTimeQuery(ms));
        const answer = await run({ runner: tx, startedAt: dateOf(row?.started) });
        if ('rollback' in db) {
          await queryRows(tx, tables, restoreLimitsQuery(String(row?.timeout), String(row?.helpers)));
        }
        return answer;
      },
      settings,
    );
  } catch (error) {
    const state = sqlStateOf(error);
    if (state === QUERY_CANCELED || state === LOCK_NOT_AVAILABLE) return undefined;
    if (!hasNoTransactions(error)) throw error;
    return withoutLimit ? await run({ runner: db, startedAt: undefined }) : undefined;
  }
}

/** Waits for each answer of a transaction for this long, and for the connection to begin with. */
class Patience {
  readonly #ms: number;
  readonly #lost: Promise<never>;
  #giveUp: (reason: Error) => void = () => undefined;
  /** Why nothing is sent any more. */
  #reason: Error | undefined;

  constructor(ms: number) {
    this.#ms = ms;
    this.#lost = new Promise((_, reject) => {
      this.#giveUp = (reason) => {
        this.#reason ??= reason;
        reject(this.#reason);
      };
    });
    this.#lost.catch(() => undefined);
  }

  async transact<T>(
    db: Database,
    run: (tx: Transaction) => Promise<T>,
    settings: TransactionSettings,
  ): Promise<T> {
    const [begun, ended] = [signal(), signal()];
    void this.#watch(begun.heard);
    const steps = async (tx: Transaction) => {
      begun.give();
      try {
        const execute = (query: Parameters<Transaction['execute']>[0]) =>
          this.#reason === undefined ? this.#watch(tx.execute(query)) : this.#lost;
        return await run(Object.create(tx, { execute: { value: execute } }));
      } finally {
        void this.#watch(ended.heard);
      }
    };
    // Drizzle would send the end of its savepoint whenever the function ends.
    const from = 'rollback' in db ? transactionUntil(db as Transaction, () => this.#reason) : db;
    return await transact(from, steps, this.#lost, settings).finally(() => {
      begun.give();
      ended.give();
    });
  }

  async #watch<T>(answer: PromiseLike<T>): Promise<T> {
    const coming = Promise.resolve(answer);
    if (!(await settlesWithin(coming, this.#ms))) {
      this.#giveUp(new QueueError(`The database has not answered for ${this.#ms / 1_000} s`));
    }
    return await coming;
  }
}

function signal(): { readonly heard: Promise<void>; give(): void } {
  let give: () => void = () => undefined;
  const heard = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { heard, give: () => give() };
}
