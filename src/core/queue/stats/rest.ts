/** Answers may take one 400th of the time: a quarter of a percent. */
const TIMES = 400;
/**
 * What answers may take at once after a while without requests: the first answers of a process are slower
 * than all later ones, and must not be shown for minutes.
 */
const BURST_MS = 1_000;
/** Never more than a twentieth of the time, also at first. */
const LEAST_TIMES = 20;
/** Applies however quick the answer was: a page that asks twice gets one answer, even on a busy machine. */
const LEAST_MS = 5_000;
/**
 * A table that is locked, or a pool without a free connection, says little about the next time; and callers
 * that ask for different answers must not wait for hours.
 */
const MAX_REST_MS = 600_000;

/** The rest of the database, shared by several answers: theirs come one after the other. */
export class Rest {
  #until = 0;
  /** What was taken and is not yet made good by time that has passed since. */
  #owedMs = 0;
  #owedAt = 0;
  readonly #times: number;
  readonly #burstMs: number;
  readonly #maxRestMs: number;
  /**
   * How long an answer takes at most where nothing is in its way. What it takes longer it has waited for a
   * connection, a lock or a processor, and the database need not rest from that.
   */
  mostMs = Number.POSITIVE_INFINITY;

  /** @param times one part in this many of the time @param burstMs and this much at once */
  constructor(times = TIMES, burstMs = BURST_MS, maxRestMs = MAX_REST_MS) {
    this.#times = times;
    this.#burstMs = burstMs;
    this.#maxRestMs = maxRestMs;
  }

  /** When what took this long may be asked for again, by the monotonic clock. */
  after(tookMs: number): number {
    const now = performance.now();
    const costMs = Math.min(tookMs, this.mostMs);
    const owedMs = Math.max(0, this.#owedMs - (now - this.#owedAt) / this.#times) + costMs;
    this.#owedMs = Math.min(owedMs, this.#burstMs + this.#maxRestMs / this.#times);
    this.#owedAt = now;
    const leastMs = Math.min(tookMs * LEAST_TIMES, Math.max(costMs * LEAST_TIMES, LEAST_MS));
    const soonest = Math.max(this.#until, now) + leastMs;
    const paid = now + (this.#owedMs - this.#burstMs) * this.#times;
    this.#until = Math.min(Math.max(soonest, paid), now + this.#maxRestMs);
    return this.#until;
  }
}
