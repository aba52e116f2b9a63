/** Up to 250 jobs a second, each enqueue may notify. */
const CALM_MS = 4;
/**
 * Beyond that, twenty a second: workers look often enough then, and `NOTIFY` holds a global lock through the
 * commit, so those who notify commit one after the other.
 */
const BUSY_MS = 50;
/** The window in which enqueued jobs are counted. */
const WINDOW_MS = 100;
/** An older rate is not used. */
const STALE_MS = 1_000;

/**
 * How often enqueues may notify the workers of a queue. Ids come from one sequence, so those that come back
 * tell how many jobs all processes enqueue. No statement is needed to learn it.
 */
export class NotifyRate {
  readonly #now: () => number;
  /** The window's beginning, and the highest id that was known then. */
  #beganMs = Number.NEGATIVE_INFINITY;
  #beganId: number | undefined;
  #highestId = 0;
  #busy = false;

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The time between two notifications of a queue. */
  get intervalMs(): number {
    return this.#busy && this.#now() - this.#beganMs < STALE_MS ? BUSY_MS : CALM_MS;
  }

  /** A statement has enqueued these jobs, or found them. */
  note(ids: readonly (number | undefined)[]): void {
    for (const id of ids) if (id !== undefined && id > this.#highestId) this.#highestId = id;
    const now = this.#now();
    const elapsedMs = now - this.#beganMs;
    if (elapsedMs < WINDOW_MS) return;
    const jobs = this.#highestId - (this.#beganId ?? this.#highestId);
    this.#busy = jobs * CALM_MS > elapsedMs;
    this.#beganMs = now;
    this.#beganId = this.#highestId;
  }
}
