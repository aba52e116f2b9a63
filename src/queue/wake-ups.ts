import type { Executor } from '../sql/executor.ts';
import type { WakeUp } from '../sql/wake-up.ts';

/** On average one notification per queue in this time: `NOTIFY` holds a global lock through the commit. */
const INTERVAL_MS = 50;

/** How many may follow each other without a gap, so an app that seldom enqueues notifies every time. */
const BURST = 5;

/** Beyond this number, forgets the queues whose last notification is long past. */
const MAX_QUEUES = 1_000;

/** Stands for queues that only the statement itself knows. No queue has an empty name. */
export const ANY_QUEUE = '';

/**
 * Decides which enqueues notify workers: a token bucket per queue. A worker that was woken polls often for a
 * while, so it also finds the jobs of enqueues in quick succession that did not notify.
 */
export class WakeUps {
  /** When each queue's bucket is full again, by `now`; it is empty when that is `BURST` intervals away. */
  readonly #fullAt = new Map<string, number>();

  /** The queues that an open transaction has already notified: their workers hear it at the commit. */
  readonly #notifiedBy = new WeakMap<Executor, Set<string>>();

  /** @param now a monotonic clock in milliseconds */
  constructor(
    readonly channel: string,
    readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * Runs a statement with the queues that it may notify, and counts those that it did notify: none if it
   * failed, inserted nothing, or inserted no due job.
   */
  async allow<T extends { readonly woken: Iterable<string> }>(
    db: Executor,
    queues: Iterable<string>,
    run: (wakeUp: WakeUp | undefined) => Promise<T>,
  ): Promise<T> {
    const allowed = [...new Set(queues)].filter((queue) => this.#take(db, queue));
    const unused = new Set(allowed);
    try {
      const result = await run(allowed.length === 0 ? undefined : { channel: this.channel, queues: allowed });
      for (const queue of result.woken) {
        unused.delete(queue);
        this.#remember(db, queue);
      }
      return result;
    } finally {
      for (const queue of unused) this.#giveBack(queue);
    }
  }

  /**
   * The permission to notify one queue, for a statement that is sent later, if at all. It counts as used,
   * since nobody reports whether it ran.
   */
  draw(queue: string): WakeUp | undefined {
    return this.#draw(queue) ? { channel: this.channel, queues: [queue] } : undefined;
  }

  #take(db: Executor, queue: string): boolean {
    return !this.#notifiedBy.get(db)?.has(queue) && this.#draw(queue);
  }

  #draw(queue: string): boolean {
    const now = this.now();
    const fullAt = Math.max(this.#fullAt.get(queue) ?? now, now) + INTERVAL_MS;
    if (fullAt > now + BURST * INTERVAL_MS) return false;
    if (this.#fullAt.size >= MAX_QUEUES && !this.#fullAt.has(queue)) this.#forgetFull(now);
    this.#fullAt.set(queue, fullAt);
    return true;
  }

  #giveBack(queue: string): void {
    const fullAt = this.#fullAt.get(queue);
    if (fullAt !== undefined) this.#fullAt.set(queue, fullAt - INTERVAL_MS);
  }

  #remember(db: Executor, queue: string): void {
    // Without a transaction each statement commits by itself. A savepoint is a transaction object of its own.
    if (!('rollback' in db) || queue === ANY_QUEUE) return;
    const notified = this.#notifiedBy.get(db) ?? new Set();
    this.#notifiedBy.set(db, notified.add(queue));
  }

  /** A full bucket behaves like no bucket. */
  #forgetFull(now: number): void {
    for (const [queue, fullAt] of this.#fullAt) if (fullAt <= now) this.#fullAt.delete(queue);
  }
}
