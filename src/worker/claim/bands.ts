import { MAX_PRIORITY } from '../../job/limits.ts';
import type { Band, ClaimedJob } from '../../queries/claim-jobs.ts';
import type { Reach } from '../../queries/find-overlooked.ts';

/** How far a floor stays below the time of the look: transactions commit a little after their jobs' times. */
const COMMIT_ALLOWANCE_MS = 1_000;

/** What is learnt from one claim. Times are of any monotonic clock. */
export interface ClaimReport {
  /** In claim order. */
  readonly jobs: readonly ClaimedJob[];
  /** Whether it found fewer than it asked for. */
  readonly short: boolean;
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Where the next claim of one queue starts: a floor per priority, kept in this worker's memory only. Without
 * it a claim walks over every row that was finished since the oldest open snapshot, because Postgres may not
 * remove them, and over every due job of a kind that this worker does not serve. In a priority whose end a
 * claim has seen, the floor is the time of that claim, less a second; in one that has more jobs than the
 * claim could take, it is the `run_at` of the first that it took. A floor is only a hint: a sweep finds what
 * is due behind it all the same.
 */
export class Bands {
  readonly #passed = new Array<Reach>(MAX_PRIORITY + 1).fill({
    floorMs: Number.NEGATIVE_INFINITY,
    endMs: Number.NEGATIVE_INFINITY,
  });
  /** The database's clock less ours, at least. */
  #aheadMs: number | undefined;
  #busyPriority = MAX_PRIORITY;
  #backlog = false;

  get all(): Band[] {
    return this.#passed.map(({ floorMs }, priority) => ({ priority, floorMs }));
  }

  /** How far claims have come, by priority. */
  get passed(): readonly Reach[] {
    return this.#passed;
  }

  /** Where a look at all priorities together starts. */
  get lowestFloorMs(): number {
    return Math.min(...this.#passed.map(({ floorMs }) => floorMs));
  }

  /** The priority whose end claims have not seen, or the last one: less urgent jobs must wait their turn. */
  get busyPriority(): number {
    return this.#busyPriority;
  }

  /** Whether the last claim has left jobs behind. */
  get backlog(): boolean {
    return this.#backlog;
  }

  note({ jobs, short, startMs, endMs }: ClaimReport): void {
    const last = jobs.at(-1);
    for (const [index, { priority, runAt }] of jobs.entries()) {
      // The first of its priority. Whole milliseconds, rounded down, so the floor is never above the row.
      const first = jobs[index - 1]?.priority !== priority;
      const floorMs = first ? runAt.getTime() : (this.#passed[priority]?.floorMs ?? 0);
      this.#passed[priority] = { floorMs, endMs: runAt.getTime() + 1 };
    }
    if (last !== undefined) this.#aheadMs = last.claimedAt.getTime() - endMs;
    this.#backlog = !short;
    this.#busyPriority = short ? MAX_PRIORITY : (last?.priority ?? MAX_PRIORITY);
    // An empty claim tells no time, so its start must do: else floors stay where only other kinds come.
    const databaseMs = last?.claimedAt.getTime() ?? startMs + (this.#aheadMs ?? Number.NEGATIVE_INFINITY);
    // A claim goes on to the next priority when it has seen the end of one.
    if (databaseMs > Number.NEGATIVE_INFINITY)
      this.#raise(databaseMs, short ? MAX_PRIORITY + 1 : this.#busyPriority);
  }

  /** Learns from a look that saw everything due at `databaseMs` and found nothing to claim. */
  noteNothing(databaseMs: number, endMs: number): void {
    this.#aheadMs = databaseMs - endMs;
    this.#backlog = false;
    this.#busyPriority = MAX_PRIORITY;
    this.#raise(databaseMs, MAX_PRIORITY + 1);
  }

  #raise(databaseMs: number, end: number): void {
    const endMs = Math.floor(databaseMs);
    this.#passed.fill({ floorMs: endMs - COMMIT_ALLOWANCE_MS, endMs }, 0, end);
  }
}
