import { figuresOf } from '../queue/stats/known-figures.ts';
import { Rest } from '../queue/stats/rest.ts';
import { SharedAnswer } from '../queue/stats/shared-answer.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Database, Executor } from '../sql/executor.ts';
import { withinTime } from '../sql/within-time.ts';

/** So many are kept: one for each scope and kind of look. */
const KEPT = 200;

/** `look` in a transaction of its own, whose statements take no longer than `timeoutMs`, or `undefined`. */
export async function within<T>(
  db: Database,
  tables: QueueTables,
  timeoutMs: number,
  look: (db: Executor) => Promise<T>,
): Promise<T | undefined> {
  return await withinTime(db, tables, timeoutMs, ({ runner }) => look(runner));
}

/**
 * Looks that all viewers share, one at a time for each name. They rest with the figures of `queue.stats` and
 * `queue.vitals`, so that all of it together takes half a percent of the time.
 */
export class Looks {
  readonly #db: Database;
  readonly #tables: QueueTables;
  readonly #rest: Rest;
  /** Those that read a few rows need not wait until a million jobs may be counted again. */
  readonly #smallRest = new Rest();
  readonly #answers = new Map<string, SharedAnswer<unknown>>();

  constructor(db: Database, tables: QueueTables) {
    this.#db = db;
    this.#tables = tables;
    this.#rest = figuresOf(tables, db).rest;
  }

  /**
   * `undefined` when it took too long.
   *
   * @param small whether it reads a few rows, however many jobs there are
   * @throws the driver's errors, which are not kept
   */
  async at<T>(
    name: string,
    timeoutMs: number,
    look: (db: Executor) => Promise<T>,
    small = false,
  ): Promise<T | undefined> {
    const known = this.#answers.get(name);
    const shared = known ?? new SharedAnswer<unknown>(small ? this.#smallRest : this.#rest);
    if (known === undefined) {
      if (this.#answers.size >= KEPT) this.#answers.clear();
      this.#answers.set(name, shared);
    }
    // The name says what kind of value stands under it.
    return (await shared.get(() => within(this.#db, this.#tables, timeoutMs, look))) as T | undefined;
  }

  /** Makes the next look a new one, for whoever has just changed what it sees. */
  forget(): void {
    this.#answers.clear();
  }
}
