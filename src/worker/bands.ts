import { MAX_PRIORITY } from '../job/limits.ts';
import type { Band, ClaimedJob } from '../queries/claim-jobs.ts';

/** A sweep may take this share of the time: one in so many parts. */
const SWEEP_SHARE = 20;

/** But the next one comes within this time: one slow sweep (a busy pool, a cold cache) must not blind the queue for long. */
const MAX_SWEEP_PAUSE_MS = 5_000;

/**
 * Where the next claim of one queue starts: a floor per priority, kept in this worker's memory and nowhere else. It is the
 * `run_at` of the first row of the last claim; what lies behind it is finished, held, or came late. Without it, a claim walks
 * over every row that was finished since the oldest open snapshot, because Postgres may not remove them.
 *
 * A floor is only a hint. A *sweep* is a claim from the very start; it finds what came late (a transaction that committed after
 * others, a `runAt` in the past, the jobs of a worker that is gone). Sweeps take at most a twentieth of the time: many a
 * second on a healthy table, few on a bloated one.
 */
export class Bands {
  readonly #floorMs = new Array<number>(MAX_PRIORITY + 1).fill(Number.NEGATIVE_INFINITY);
  #nextSweepMs = Number.NEGATIVE_INFINITY;

  /** Whether the next claim should start from the very start. `nowMs` is any monotonic clock. */
  sweepIsDue(nowMs: number): boolean {
    return nowMs >= this.#nextSweepMs;
  }

  /** The bands of the next claim. */
  of(sweep: boolean): Band[] {
    return this.#floorMs.map((floorMs, priority) => ({
      priority,
      floorMs: sweep ? Number.NEGATIVE_INFINITY : floorMs,
    }));
  }

  /** Learns from a claim: `jobs` in claim order. */
  note(jobs: readonly ClaimedJob[], sweep: boolean, startMs: number, endMs: number): void {
    for (const [index, { priority, runAt }] of jobs.entries()) {
      // The first of its priority. Whole milliseconds, rounded down, so the floor is never above the row.
      if (jobs[index - 1]?.priority !== priority) this.#floorMs[priority] = Math.floor(runAt.getTime());
    }
    if (sweep) this.#nextSweepMs = endMs + Math.min((endMs - startMs) * SWEEP_SHARE, MAX_SWEEP_PAUSE_MS);
  }
}
