import { agedPriority } from '../../job/aging.ts';
import { MAX_PRIORITY } from '../../job/limits.ts';
import type { Band, ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { Reach } from '../../queries/claim/find-overlooked.ts';
import { agedBands } from './aged-bands.ts';

/** How far a floor stays below the time of the look: transactions commit a little after their jobs' times. */
const COMMIT_ALLOWANCE_MS = 1_000;

/** What is learnt from one claim. Times are of any monotonic clock. */
export interface ClaimReport {
  /** Where it looked; their floors need not be known here. */
  readonly bands: readonly Band[];
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
 * remove them. It also walks over every due job of a kind that this worker does not serve. In a priority
 * whose end a claim has seen, the floor is the time of that claim, less a second. In one that has more jobs
 * than the claim could take, it is the `run_at` of the first that it took. A floor is only a hint: a sweep
 * finds what is due behind it all the same.
 *
 * With aging, a claim splits these bands by the age of their jobs. The parts of one priority follow each
 * other in time, so there is one floor for all of them: where the first part begins that no claim has seen
 * the end of.
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
  readonly #agingMs: number | undefined;

  /** @param agingMs how long a job is due until it counts as one priority better */
  constructor(agingMs?: number) {
    this.#agingMs = agingMs;
  }

  /** Where a claim of this many jobs that is sent now looks, in its order. */
  next(limit: number, nowMs: number): Band[] {
    const floorsMs = this.#passed.map(({ floorMs }) => floorMs);
    // The first claim knows no time of the database; it is one without aging.
    if (this.#agingMs === undefined || this.#aheadMs === undefined)
      return floorsMs.map((floorMs, priority) => ({ priority, floorMs }));
    return agedBands(floorsMs, { afterMs: this.#agingMs, nowMs: nowMs + this.#aheadMs, limit });
  }

  /** As which priority a job counts now. */
  priorityOf({ priority, runAtMs }: { priority: number; runAtMs: number }, nowMs: number): number {
    if (this.#agingMs === undefined || this.#aheadMs === undefined) return priority;
    return agedPriority(priority, nowMs + this.#aheadMs - runAtMs, this.#agingMs);
  }

  /** How far claims have come, by priority. */
  get passed(): readonly Reach[] {
    return this.#passed;
  }

  /** Where a look at all priorities together starts. */
  get lowestFloorMs(): number {
    return Math.min(...this.#passed.map(({ floorMs }) => floorMs));
  }

  /**
   * The priority, or that as which jobs count, whose end claims have not seen, or the last one: less urgent
   * jobs must wait their turn.
   */
  get busyPriority(): number {
    return this.#busyPriority;
  }

  /** Whether the last claim has left jobs behind. */
  get backlog(): boolean {
    return this.#backlog;
  }

  note({ bands, jobs, short, startMs, endMs }: ClaimReport): void {
    const last = jobs.at(-1);
    if (last !== undefined) this.#aheadMs = last.claimedAt.getTime() - endMs;
    this.#backlog = !short;
    this.#busyPriority =
      short || last === undefined
        ? MAX_PRIORITY
        : this.priorityOf({ priority: last.priority, runAtMs: last.runAt.getTime() }, endMs);
    // An empty claim tells no time, so its start must do: else floors stay where only other kinds come.
    const databaseMs = last?.claimedAt.getTime() ?? startMs + (this.#aheadMs ?? Number.NEGATIVE_INFINITY);
    const at = short ? bands.length : bands.findIndex((band) => last !== undefined && isIn(band, last));
    // A claim goes on to the next band when it has seen the end of one.
    if (databaseMs > Number.NEGATIVE_INFINITY)
      for (const { priority, ceilingMs } of bands.slice(0, at)) this.#raise(priority, databaseMs, ceilingMs);
    const band = bands[at];
    const first = band && jobs.find((job) => isIn(band, job));
    if (first === undefined || last === undefined) return;
    // Whole milliseconds, rounded down, so the floor is never above the row.
    this.#pass(last.priority, first.runAt.getTime(), last.runAt.getTime() + 1);
  }

  /** Learns from a look that saw everything due at `databaseMs` and found nothing to claim. */
  noteNothing(databaseMs: number, endMs: number): void {
    this.#aheadMs = databaseMs - endMs;
    this.#backlog = false;
    this.#busyPriority = MAX_PRIORITY;
    for (const priority of this.#passed.keys()) this.#raise(priority, databaseMs);
  }

  /** The end of a priority was seen at `databaseMs`, or that of the part before the ceiling. */
  #raise(priority: number, databaseMs: number, ceilingMs = Number.POSITIVE_INFINITY): void {
    const nowMs = Math.floor(databaseMs);
    this.#pass(priority, Math.min(nowMs - COMMIT_ALLOWANCE_MS, ceilingMs), Math.min(nowMs, ceilingMs));
  }

  /** Claims have come up to `endMs`, and may have come further before: the floor is a little behind that. */
  #pass(priority: number, floorMs: number, endMs: number): void {
    const before = this.#passed[priority]?.endMs ?? endMs;
    this.#passed[priority] = { floorMs, endMs: Math.max(endMs, before) };
  }
}

function isIn({ priority, floorMs, ceilingMs = Number.POSITIVE_INFINITY }: Band, job: ClaimedJob): boolean {
  const runAtMs = job.runAt.getTime();
  return job.priority === priority && runAtMs >= floorMs && runAtMs < ceilingMs;
}
