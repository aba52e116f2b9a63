import { withinTime } from '../../drivers/within-time.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Executor } from '../../sql/executor.ts';
import { hasTransactions } from '../../sql/limit-time.ts';
import type { Finding } from './finding.ts';

/** Dead rows under an old snapshot, or a lock, make a look slow, and a check must not wait for that. */
const LIMIT_MS = 2_000;
/** Once a look has taken too long, the next ones probably do, too. */
const NEXT_LIMIT_MS = 250;

/** The looks of a check, each of which takes a bounded time where the driver has transactions. */
export class BoundedLooks {
  readonly #db: Executor;
  readonly #tables: QueueTables;
  readonly #isLimited: boolean;
  /** What took too long. */
  readonly #missed = new Set<string>();

  /** @param isLimited whether the server knows the settings that limit a statement */
  constructor(db: Executor, tables: QueueTables, isLimited: boolean) {
    this.#db = db;
    this.#tables = tables;
    this.#isLimited = isLimited;
  }

  /** `undefined` when a statement took too long. @param what it looks at, for {@link timedOut} */
  async take<T>(what: string, look: (runner: Executor) => Promise<T>): Promise<T | undefined> {
    const db = this.#db;
    if (!this.#isLimited || !hasTransactions(db)) return await look(db);
    const limitMs = this.#missed.size === 0 ? LIMIT_MS : NEXT_LIMIT_MS;
    let isAnswered = false;
    const answer = await withinTime(db, this.#tables, limitMs, async ({ runner }) => {
      const answer = await look(runner);
      isAnswered = true;
      return answer;
    });
    if (!isAnswered) this.#missed.add(what);
    return answer;
  }

  /** What is to be said when something took too long. */
  timedOut(): Finding[] {
    if (this.#missed.size === 0) return [];
    return [
      {
        code: 'timed-out',
        severity: 'warning',
        message:
          `Timed out looking at ${[...this.#missed].join(', ')}: another transaction locks the tables ` +
          'of the queue, or an old snapshot makes reading them slow. The checks that need them were skipped',
        fix:
          'Look for the holder of the lock: select pid, relation::regclass, mode from pg_locks where ' +
          "granted and mode = 'AccessExclusiveLock'. Then check again",
      },
    ];
  }
}
