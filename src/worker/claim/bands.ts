import { MAX_PRIORITY } from '../../job/limits.ts';
import type { Band, ClaimedJob } from '../../queries/claim-jobs.ts';

/** A sweep may take this share of the time: one in so many parts. */
const SWEEP_SHARE = 20;

/** But the next one comes within this time: one slow sweep (a busy pool, a cold cache) must not blind the queue for long. */
const MAX_SWEEP_PAUSE_MS = 5_000;

/** A sweep that took no longer is cheap: then it may take a quarter of the time while there is reason to expect a late job. */
const CHEAP_SWEEP_MS = 25;
const EXPECTANT_SWEEP_SHARE = 4;

/** A floor stays so far below the time of the look: transactions commit a little after the time that their jobs bear. */
const COMMIT_ALLOWANCE_MS = 1_000;

/** One claim, as it is learnt from. */
export interface ClaimReport {
  /** In claim order. */
  readonly jobs: readonly ClaimedJob[];
  /** Whether it found fewer than it asked for. */
  readonly short: boolean;
  readonly sweep: boolean;
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Where the next claim of one queue starts: a floor per priority, kept in this worker's memory and nowhere else. Without it, a
 * claim walks over every row that was finished since the oldest open snapshot, because Postgres may not remove them, and over
 * every due job of a kind that this worker does not serve.
 *
 * In a priority of which a claim has seen the end, the floor is the time of that claim, less a second. In one that has more jobs than it
 * could take, it is the `run_at` of the first that it took: what lies behind is finished, held, or came late.
 *
 * A floor is only a hint. A *sweep* is a claim from the very start; it finds what came late (a transaction that committed after
 * others, a `runAt` in the past, the jobs of a worker that is gone). Sweeps take at most a twentieth of the time: many a
 * second on a healthy table, few on a bloated one.
 */
export class Bands {
  readonly #floorMs = new Array<number>(MAX_PRIORITY + 1).fill(Number.NEGATIVE_INFINITY);
  #nextSweepMs = Number.NEGATIVE_INFINITY;
  #nextCheapSweepMs = Number.NEGATIVE_INFINITY;

  /**
   * Whether the next claim should start from the very start.
   *
   * @param nowMs of any monotonic clock
   * @param expectant whether a job was told of and not found: it may have been enqueued long before its transaction committed
   */
  sweepIsDue(nowMs: number, expectant = false): boolean {
    return nowMs >= (expectant ? this.#nextCheapSweepMs : this.#nextSweepMs);
  }

  /** Makes the next claim a sweep: something lies behind the floors, or nothing may be overlooked. */
  sweepNext(): void {
    this.#nextSweepMs = Number.NEGATIVE_INFINITY;
    this.#nextCheapSweepMs = Number.NEGATIVE_INFINITY;
  }

  /** The bands of the next claim. */
  of(sweep: boolean): Band[] {
    return this.#floorMs.map((floorMs, priority) => ({
      priority,
      floorMs: sweep ? Number.NEGATIVE_INFINITY : floorMs,
    }));
  }

  /** Where a look at all priorities together starts. */
  get lowestFloorMs(): number {
    return Math.min(...this.#floorMs);
  }

  /** Learns from a claim. */
  note({ jobs, short, sweep, startMs, endMs }: ClaimReport): void {
    const last = jobs.at(-1);
    for (const [index, { priority, runAt }] of jobs.entries()) {
      // The first of its priority. Whole milliseconds, rounded down, so the floor is never above the row.
      if (jobs[index - 1]?.priority !== priority) this.#floorMs[priority] = Math.floor(runAt.getTime());
    }
    // A claim goes on to the next priority when it has seen the end of one.
    if (last !== undefined) this.#raise(last.claimedAt.getTime(), short ? MAX_PRIORITY + 1 : last.priority);
    if (sweep) this.#swept(startMs, endMs);
  }

  /** Learns from a look that saw everything due at `databaseMs` and found nothing to claim. */
  noteNothing(databaseMs: number, sweep: boolean, startMs: number, endMs: number): void {
    this.#raise(databaseMs, MAX_PRIORITY + 1);
    if (sweep) this.#swept(startMs, endMs);
  }

  #raise(databaseMs: number, end: number): void {
    this.#floorMs.fill(Math.floor(databaseMs) - COMMIT_ALLOWANCE_MS, 0, end);
  }

  #swept(startMs: number, endMs: number): void {
    const tookMs = endMs - startMs;
    this.#nextSweepMs = endMs + Math.min(tookMs * SWEEP_SHARE, MAX_SWEEP_PAUSE_MS);
    this.#nextCheapSweepMs =
      tookMs <= CHEAP_SWEEP_MS ? endMs + tookMs * EXPECTANT_SWEEP_SHARE : this.#nextSweepMs;
  }
}
