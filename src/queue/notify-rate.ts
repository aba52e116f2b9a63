/**
 * All processes together notify about 250 times a second: `NOTIFY` holds a global lock through the commit, so
 * those who notify commit one after the other.
 */
const SHARED_INTERVAL_MS = 4;
/** And each process twenty times a second, whatever the others do. */
const OWN_INTERVAL_MS = 50;
/** Over so long it is learnt how many enqueue. */
const WINDOW_MS = 100;

/**
 * How often enqueues may notify the workers of a queue. Ids come from one sequence, so those that come back
 * tell how many jobs all processes enqueue: beyond 250 a second, a queue has its part of the notifications,
 * by its part of the jobs. No statement is needed to learn it.
 */
export class NotifyRate {
  readonly #now: () => number;
  /** The window's beginning, and the highest id that was known then. */
  #beganMs = Number.NEGATIVE_INFINITY;
  #beganId: number | undefined;
  #highestId = 0;
  /** How many jobs this process has enqueued in the window. */
  readonly #jobs = new Map<string, number>();
  /** For the queues of the last window; where fewer jobs come, none needs one. */
  #intervals: ReadonlyMap<string, number> | undefined;

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The time between two notifications of a queue. */
  intervalMs(queue: string): number {
    // Long after the last window nothing is known of the others.
    if (this.#intervals === undefined || this.#now() - this.#beganMs > 10 * WINDOW_MS)
      return SHARED_INTERVAL_MS;
    return this.#intervals.get(queue) ?? OWN_INTERVAL_MS;
  }

  /** Jobs of some queues were enqueued by one statement. */
  note(queues: readonly string[], ids: readonly (number | undefined)[]): void {
    for (const id of ids) if (id !== undefined && id > this.#highestId) this.#highestId = id;
    for (const queue of queues) this.#jobs.set(queue, (this.#jobs.get(queue) ?? 0) + ids.length);
    const now = this.#now();
    const elapsedMs = now - this.#beganMs;
    if (elapsedMs < WINDOW_MS) return;
    const jobs = this.#highestId - (this.#beganId ?? this.#highestId);
    this.#intervals = jobs * SHARED_INTERVAL_MS > elapsedMs ? this.#shares(jobs) : undefined;
    this.#beganMs = now;
    this.#beganId = this.#highestId;
    this.#jobs.clear();
  }

  #shares(jobs: number): ReadonlyMap<string, number> {
    return new Map(
      [...this.#jobs].map(([queue, own]) => [
        queue,
        Math.min(Math.max((SHARED_INTERVAL_MS * jobs) / own, SHARED_INTERVAL_MS), OWN_INTERVAL_MS),
      ]),
    );
  }
}
