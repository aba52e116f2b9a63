/** Jobs are claimed ahead that will have begun within this time. */
const HORIZON_MS = 50;
/** More brings no more throughput, and payloads take memory. */
const MAX_PREFETCH = 1_000;
/** The least weight of one attempt in the average: it follows the last twenty or so. */
const WEIGHT = 0.05;
/** With fewer attempts than this nothing is known. */
const MIN_ATTEMPTS = 5;

/**
 * How many jobs to claim beyond the free slots: as many as the handlers will have finished within 50 ms, by the time that
 * they have lately taken. So no-op jobs travel in hundreds per claim, and long jobs are not hoarded by a worker that will not
 * begin them for minutes.
 */
export class Prefetch {
  #attempts = 0;
  #meanMs = 0;

  /** Learns from an attempt. */
  note(durationMs: number): void {
    this.#attempts++;
    this.#meanMs += (durationMs - this.#meanMs) * Math.max(1 / this.#attempts, WEIGHT);
  }

  /** The expectation was wrong: learns anew. */
  distrust(): void {
    this.#attempts = 0;
  }

  /** How many jobs to hold beyond the slots. */
  size(concurrency: number): number {
    if (this.#attempts < MIN_ATTEMPTS) return 0;
    return Math.min(Math.floor((concurrency * HORIZON_MS) / Math.max(this.#meanMs, 0.01)), MAX_PREFETCH);
  }
}
