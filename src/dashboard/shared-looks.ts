import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Executor } from '../sql/executor.ts';
import { hasTransactions, withinTime } from '../sql/within-time.ts';

/** What a bounded look at the database came to. */
export type Look<T> =
  | { readonly value: T; readonly at: number; readonly tookMs: number }
  | { readonly value: undefined; readonly at: number; readonly tookMs: number };

/** A look may take this share of the time: the next one waits for the rest. */
const DUTY = 0.01;
const YOUNG_MS = 1_000;
const KEPT = 200;

/**
 * `look` in a transaction of its own, whose statements take no longer than `timeoutMs`; `undefined` when one
 * did. Where the driver has no interactive transactions it runs as it is.
 */
export async function within<T>(
  db: Executor,
  tables: QueueTables,
  timeoutMs: number,
  look: (db: Executor) => Promise<T>,
): Promise<T | undefined> {
  if (!hasTransactions(db)) return await look(db);
  return await withinTime(db, tables, timeoutMs, ({ runner }) => look(runner));
}

/**
 * Looks that all viewers share: one at a time for each name, and the next not before a hundred times what the
 * last one took, so that none takes more than a hundredth of a connection's time.
 */
export class SharedLooks {
  readonly #db: Executor;
  readonly #tables: QueueTables;
  readonly #kept = new Map<string, { look: Look<unknown>; until: number }>();
  readonly #running = new Map<string, Promise<Look<unknown>>>();

  constructor(db: Executor, tables: QueueTables) {
    this.#db = db;
    this.#tables = tables;
  }

  /** @throws the driver's errors, but for a timeout */
  async at<T>(name: string, timeoutMs: number, look: (db: Executor) => Promise<T>): Promise<Look<T>> {
    const kept = this.#kept.get(name);
    // The name says what kind of value stands under it.
    if (kept !== undefined && Date.now() < kept.until) return kept.look as Look<T>;
    const running = this.#running.get(name) ?? this.#look(name, timeoutMs, look);
    return (await running) as Look<T>;
  }

  /** Makes the next look a new one, for whoever has just changed what it sees. */
  forget(): void {
    this.#kept.clear();
  }

  #look<T>(name: string, timeoutMs: number, look: (db: Executor) => Promise<T>): Promise<Look<unknown>> {
    const looking = (async () => {
      const at = Date.now();
      try {
        const value = await within(this.#db, this.#tables, timeoutMs, look);
        const tookMs = Date.now() - at;
        const done: Look<unknown> = { value, at, tookMs };
        if (this.#kept.size >= KEPT) this.#kept.clear();
        this.#kept.set(name, { look: done, until: Date.now() + Math.max(YOUNG_MS, tookMs / DUTY) });
        return done;
      } finally {
        this.#running.delete(name);
      }
    })();
    this.#running.set(name, looking);
    return looking;
  }
}
