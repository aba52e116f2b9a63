/** A look costs a statement, so two are at least this far apart. */
const MIN_GAP_MS = 2;
/** After this long without a job the queue is idle. */
const HOT_MS = 300;
/**
 * The gap between looks is this part of the time since the last job: long after it the next is less likely.
 */
const GAP_SHARE = 4;

/**
 * How soon to look again after a claim that came back short. Enqueues notify only so often, so just after a
 * job or a notification others are likely: the queue is *hot*, and looked at often, then ever less so.
 */
export class HotPolling {
  readonly #maxGapMs: number;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(maxGapMs: number) {
    this.#maxGapMs = maxGapMs;
  }

  /** A job was found, or told of. `nowMs` is any monotonic clock. */
  note(nowMs: number): void {
    this.#lastMs = nowMs;
  }

  quietMs(nowMs: number): number {
    return nowMs - this.#lastMs;
  }

  /** How long to wait before the next look; `undefined` when the queue is no longer hot. */
  gapMs(nowMs: number): number | undefined {
    const sinceMs = this.quietMs(nowMs);
    if (sinceMs >= HOT_MS) return undefined;
    return Math.min(Math.max(sinceMs / GAP_SHARE, MIN_GAP_MS), this.#maxGapMs);
  }
}
