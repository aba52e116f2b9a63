import type { Executor } from '../../sql/executor.ts';
import type { WakeUp } from '../../sql/wake-up.ts';
import { NotifyRate } from './notify-rate.ts';

/** How many may follow each other without a gap. */
const BURST = 5;

/** Beyond this number, forgets the queues whose last notification is long past. */
const MAX_QUEUES = 1_000;

/** Stands for queues that only the statement itself knows. No queue has an empty name. */
export const ANY_QUEUE = '';

interface Bucket {
  tokens: number;
  /** When it had this many, by `now`. */
  atMs: number;
}

/** What a statement that inserts jobs tells of them. */
interface Inserted {
  readonly woken: Iterable<string>;
  /** Of the jobs that it has inserted or found, where it returns them. */
  readonly ids?: readonly (number | undefined)[];
}

/**
 * Decides which enqueues notify workers: a token bucket per queue, which fills as `NotifyRate` says. While it
 * does not run empty, workers look once for each notification; by the last token they learn that jobs may
 * follow that do not notify, and poll often for a while.
 */
export class WakeUps {
  readonly #buckets = new Map<string, Bucket>();
  readonly #rate: NotifyRate;

  /** The queues that an open transaction has already notified: their workers hear it at the commit. */
  readonly #notifiedBy = new WeakMap<Executor, Set<string>>();

  /** @param now a monotonic clock in milliseconds */
  constructor(
    readonly channel: string,
    readonly now: () => number = () => performance.now(),
  ) {
    this.#rate = new NotifyRate(now);
  }

  /**
   * Runs a statement with the queues that it may notify, and counts those that it did notify: none if it
   * failed, inserted nothing, or inserted no due job.
   */
  async allow<T extends Inserted>(
    db: Executor,
    queues: Iterable<string>,
    run: (wakeUp: WakeUp | undefined) => Promise<T>,
  ): Promise<T> {
    const allowed = [...new Set(queues)].filter((queue) => this.#take(db, queue));
    const unused = new Set(allowed);
    try {
      const result = await run(allowed.length === 0 ? undefined : this.#wakeUp(allowed));
      for (const queue of result.woken) {
        unused.delete(queue);
        this.#remember(db, queue);
      }
      if (result.ids !== undefined) this.#rate.note(result.ids);
      return result;
    } finally {
      for (const queue of unused) this.#giveBack(queue);
    }
  }

  /**
   * The permission to notify one queue, for a statement that is sent later, if at all. It counts as used,
   * since it is never reported whether the statement ran.
   */
  draw(queue: string): WakeUp | undefined {
    return this.#draw(queue) ? this.#wakeUp([queue]) : undefined;
  }

  #wakeUp(queues: readonly string[]): WakeUp {
    const othersNotify = queues.every((queue) => (this.#buckets.get(queue)?.tokens ?? 0) >= 1);
    return { channel: this.channel, queues, othersNotify };
  }

  #take(db: Executor, queue: string): boolean {
    return !this.#notifiedBy.get(db)?.has(queue) && this.#draw(queue);
  }

  #draw(queue: string): boolean {
    const now = this.now();
    if (this.#buckets.size >= MAX_QUEUES && !this.#buckets.has(queue)) this.#forgetFull(now);
    const bucket = this.#buckets.get(queue) ?? { tokens: BURST, atMs: now };
    bucket.tokens = this.#tokensOf(bucket, now);
    bucket.atMs = now;
    this.#buckets.set(queue, bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }

  #tokensOf({ tokens, atMs }: Bucket, now: number): number {
    return Math.min(BURST, tokens + (now - atMs) / this.#rate.intervalMs);
  }

  #giveBack(queue: string): void {
    const bucket = this.#buckets.get(queue);
    if (bucket !== undefined) bucket.tokens = Math.min(BURST, bucket.tokens + 1);
  }

  #remember(db: Executor, queue: string): void {
    // Without a transaction each statement commits by itself. A savepoint is a transaction object of its own.
    if (!('rollback' in db) || queue === ANY_QUEUE) return;
    const notified = this.#notifiedBy.get(db) ?? new Set();
    this.#notifiedBy.set(db, notified.add(queue));
  }

  /** A full bucket behaves like no bucket. */
  #forgetFull(now: number): void {
    for (const [queue, bucket] of this.#buckets) {
      if (this.#tokensOf(bucket, now) >= BURST) this.#buckets.delete(queue);
    }
  }
}
