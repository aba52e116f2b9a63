import type { QueueTables } from '../../core/schema/index.ts';
import type { Database, Executor } from '../../index.ts';
import { figuresOf, Rest, SharedAnswer, withinTime } from '../../internal.ts';

/** So many are kept: one for each scope and kind of look. No name contains what a viewer writes. */
const KEPT = 200;

/** Each other look takes a tenth of a percent of the time: counts must not wait for it. */
const APART = 1_000;
const APART_BURST_MS = 100;
/** A look that reads a few rows is slow only when it has to wait, and a user may wait for its result. */
const MAX_SMALL_REST_MS = 5_000;

/**
 * With what a look rests. `figures`: with those of `queue.stats`. `slow`: apart from these, since it changes
 * slowly. `small`: it reads a few rows, however many jobs there are, and rests apart as well.
 */
export type Pace = 'figures' | 'slow' | 'small';

/** Statements, and when their snapshot was taken; `undefined` where each of them has its own. */
export type Look<T> = (db: Executor, seenAt: Date | undefined) => Promise<T>;

/**
 * `look` in a transaction of its own, whose statements take no longer than `timeoutMs`, or `undefined`. They
 * see one snapshot: what one of them says of another's rows is then so.
 */
export async function within<T>(
  db: Database,
  tables: QueueTables,
  timeoutMs: number,
  look: Look<T>,
): Promise<T | undefined> {
  return await withinTime(db, tables, timeoutMs, ({ runner, startedAt }) => look(runner, startedAt), {
    settings: { isolationLevel: 'repeatable read' },
  });
}

/**
 * Looks that all viewers share, one at a time for each name. They rest with the figures of `queue.stats` and
 * `queue.vitals`, so that all of it together takes a quarter of a percent of the time. What changes slowly,
 * and what reads a few rows, rests apart from them.
 */
export class Looks {
  readonly #db: Database;
  readonly #tables: QueueTables;
  readonly #rests: Readonly<Record<Pace, Rest>>;
  readonly #answers = new Map<string, SharedAnswer<unknown>>();

  constructor(db: Database, tables: QueueTables) {
    this.#db = db;
    this.#tables = tables;
    const slow = new Rest(APART, APART_BURST_MS);
    const small = new Rest(APART, APART_BURST_MS, MAX_SMALL_REST_MS);
    this.#rests = { figures: figuresOf(db, tables).rest, slow, small };
  }

  /**
   * `undefined` when it took too long.
   *
   * @throws the driver's errors, which are not kept
   */
  async at<T>(
    name: string,
    timeoutMs: number,
    look: (db: Executor) => Promise<T>,
    pace: Pace = 'figures',
  ): Promise<T | undefined> {
    return await this.shared(name, () => within(this.#db, this.#tables, timeoutMs, look), pace);
  }

  /** The same without a transaction, for what begins one itself: with one connection it would wait for it. */
  async shared<T>(name: string, ask: () => Promise<T>, pace: Pace): Promise<T> {
    const known = this.#answers.get(name);
    const shared = known ?? new SharedAnswer<unknown>(this.#rests[pace]);
    // The last one is the one that was used last.
    this.#answers.delete(name);
    this.#answers.set(name, shared);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > KEPT && oldest !== undefined) this.#answers.delete(oldest);
    // The name says what kind of value stands under it.
    return (await shared.get(ask)) as T;
  }

  /** Forgets all answers, so that a user who has just changed something sees the change. */
  forget(): void {
    this.#answers.clear();
  }
}
