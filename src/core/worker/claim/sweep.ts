import type { ClaimPlace } from '../../queries/claim/find-overlooked.ts';

/** Slices may take one part in this many of the time. */
const SHARE = 20;
/**
 * The end of a pass may take this share, up to this time, and the usual one beyond it. So one that has to
 * wait on a busy machine delays the next by 0.2 s, and not by a second.
 */
const END_SHARE = 4;
const END_MS = 50;
/** The next slice comes within this time: a slow one (a cold cache) must not blind the queue for long. */
const MAX_PAUSE_MS = 5_000;
/** The least time between two passes. */
const MIN_PAUSE_MS = 10;
/** And this part of the time since the last job: the longer that is ago, the fewer are still to commit. */
const QUIET_SHARE = 10;
/** Workers of the same queues and kinds find for each other, so each sweeps less often, up to this many. */
const MAX_CREW = 50;
/** In a queue where no job comes, slices need not follow each other sooner. */
const MAX_QUIET_PAUSE_MS = 1_000;
/** The least time between two passes beside a backlog. */
const BACKLOG_PAUSE_MS = 100;
/**
 * An urgent pass reads the jobs that became due in these times before the floors, and then everything. A job
 * that was held a moment ago is usually among the newest, and would wait for seconds behind a million older
 * jobs.
 */
const URGENT_SPANS_MS = [60_000, 3_600_000, undefined] as const;

/** What is learnt from one slice. Times are of any monotonic clock. */
export interface SliceReport {
  /** Where it stopped, before the end of the queue. */
  readonly after: ClaimPlace | undefined;
  /** How many overlooked jobs it has found. */
  readonly found: number;
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * The sweep of one queue: one *pass* after the other, slice by slice, through everything that its claims have
 * passed. On a healthy table a pass is one slice of a millisecond, and there are many a second while jobs
 * come. Beside a million jobs of other kinds one takes 15 seconds, or a minute while none comes. An *urgent*
 * pass does not sleep between slices: some jobs are known to have become due behind the floors.
 */
export class Sweep {
  #after: ClaimPlace | undefined;
  /** What is left of an urgent pass. */
  #spansMs: readonly (number | undefined)[] = [];
  /** The pass was restarted while a slice was under way, so the end of that slice says nothing about it. */
  #anew = false;
  #tookMs = 0;
  #lastTookMs = Number.POSITIVE_INFINITY;
  #endMs = Number.NEGATIVE_INFINITY;
  #found = false;

  /** Where the next slice begins; `undefined`: at the very start. */
  get after(): ClaimPlace | undefined {
    return this.#after;
  }

  /** How far before the floors the pass begins; `undefined`: at the very start. */
  get spanMs(): number | undefined {
    return this.#spansMs[0];
  }

  /** Whether a pass goes on to its end without sleeping. */
  get urgent(): boolean {
    return this.#spansMs.length > 0;
  }

  get found(): boolean {
    return this.#found;
  }

  /** Whether the last slice ended a pass, and no other is asked for. */
  get ended(): boolean {
    return this.#after === undefined && !this.urgent;
  }

  /** Goes through the whole queue without sleeping; once, or with the newest jobs first. */
  urge(first?: 'newest first'): void {
    this.#spansMs = first === undefined ? [undefined] : URGENT_SPANS_MS;
    this.#after = undefined;
    this.#anew = true;
  }

  /** A slice is read from here on. */
  begin(): void {
    this.#anew = false;
  }

  /**
   * When the next slice is due, by the clock of the reports.
   * @param quietMs how long ago the last job came, or was notified
   * @param idleMs how often to begin a pass when that is long ago
   * @param backlog whether more jobs are due than claims can take: then a late one waits its turn anyway
   * @param crew how many workers sweep this queue
   */
  dueMs(quietMs: number, idleMs: number, backlog: boolean, crew = 1): number {
    if (this.urgent) return this.#endMs;
    const tookMs = this.#tookMs;
    const sharing = Math.min(crew, MAX_CREW);
    const quietPauseMs = Math.max(quietMs / QUIET_SHARE, MIN_PAUSE_MS * sharing);
    const after = (restMs: number, pauseMs: number) =>
      this.#endMs + Math.max(Math.min(restMs, MAX_PAUSE_MS), pauseMs);
    if (this.#after === undefined && backlog)
      return after(tookMs * SHARE * sharing, BACKLOG_PAUSE_MS * sharing);
    if (this.#after === undefined)
      return after(Math.max(tookMs * END_SHARE, (tookMs - END_MS) * SHARE), Math.min(quietPauseMs, idleMs));
    // What it finds are jobs to do, no waste.
    if (this.#found) return after(0, MIN_PAUSE_MS);
    return after(tookMs * SHARE, Math.min(quietPauseMs, MAX_QUIET_PAUSE_MS));
  }

  note({ after, found, startMs, endMs }: SliceReport): void {
    this.#found = found > 0;
    // The better of two: one that had to wait, on a busy machine, says little.
    this.#tookMs = Math.min(endMs - startMs, this.#lastTookMs);
    this.#lastTookMs = endMs - startMs;
    this.#endMs = endMs;
    if (this.#anew) return;
    this.#after = after;
    if (after === undefined) this.#spansMs = this.#spansMs.slice(1);
  }
}
