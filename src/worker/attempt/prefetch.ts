/** Jobs are claimed ahead that will have begun within this time. */
const HORIZON_MS = 50;
/** What will be called within this time is recorded as begun. */
const SOON_MS = 10;
/** More brings no more throughput, and payloads take memory. */
const MAX_PREFETCH = 4_000;
/** What waits for a slot may take so much memory, by the size that payloads have lately had. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The least weight of one attempt in the average: it follows the last twenty or so. */
const WEIGHT = 0.05;
/** With fewer attempts than this nothing is known. */
const MIN_ATTEMPTS = 5;

/**
 * How many jobs to claim beyond the free slots: as many as the handlers will have finished within 50 ms, by
 * the time that they have lately taken. So no-op jobs travel in hundreds per claim, and long jobs are not
 * hoarded by a worker that will not begin them for minutes. And no more than memory bears.
 */
export class Prefetch {
  #attempts = 0;
  #meanMs = 0;
  #recentBytes = 0;

  /** Learns from an attempt. */
  note(durationMs: number): void {
    this.#attempts++;
    this.#meanMs += (durationMs - this.#meanMs) * Math.max(1 / this.#attempts, WEIGHT);
  }

  /**
   * Learns from a claim. The largest counts for as long as it is remembered: memory is lost at once, and
   * regained slowly.
   */
  noteClaimed(payloadBytes: readonly number[]): void {
    for (const bytes of payloadBytes) this.#recentBytes = Math.max(bytes, this.#recentBytes * (1 - WEIGHT));
  }

  /** The expectation was wrong: learns anew. */
  distrust(): void {
    this.#attempts = 0;
  }

  /** How many jobs to hold beyond the slots. */
  size(concurrency: number): number {
    const byMemory = MAX_BYTES / Math.max(this.#recentBytes, 1);
    return Math.floor(Math.min(this.#within(HORIZON_MS, concurrency), byMemory, MAX_PREFETCH));
  }

  /** How many jobs beyond the free slots will begin in a moment. */
  soon(concurrency: number): number {
    return this.#within(SOON_MS, concurrency);
  }

  /** How many attempts the handlers will have ended within this time, by what they have lately taken. */
  #within(horizonMs: number, concurrency: number): number {
    if (this.#attempts < MIN_ATTEMPTS) return 0;
    return Math.floor((concurrency * horizonMs) / Math.max(this.#meanMs, 0.01));
  }
}
