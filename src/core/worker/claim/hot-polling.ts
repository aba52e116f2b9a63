/** A look costs a statement, so two are at least this far apart. */
const MIN_GAP_MS = 2;
/** After this long without a job the queue is idle. */
const HOT_MS = 300;
/**
 * The gap between looks is this part of the time since the last job: long after it the next is less likely.
 */
const GAP_SHARE = 4;

/**
 * How soon to look again after a claim that came back short. Just after a job that came without a
 * notification, more are likely: the queue is *hot*, and is polled often, then less and less. The same holds
 * after a notification that does not say that others notify as well.
 */
export class HotPolling {
  readonly #maxGapMs: number;
  #lastMs = Number.NEGATIVE_INFINITY;
  #hotMs = Number.NEGATIVE_INFINITY;

  constructor(maxGapMs: number) {
    this.#maxGapMs = maxGapMs;
  }

  /** Jobs were found or notified. `nowMs` is any monotonic clock. @param all whether no others are likely */
  note(nowMs: number, all: boolean): void {
    this.#lastMs = nowMs;
    if (!all) this.#hotMs = nowMs;
  }

  quietMs(nowMs: number): number {
    return nowMs - this.#lastMs;
  }

  /**
   * How long to wait before the next look; `undefined` when the queue is no longer hot.
   *
   * @param toldMs when it was notified of a job that it has not seen yet
   */
  gapMs(nowMs: number, toldMs = Number.NEGATIVE_INFINITY): number | undefined {
    const sinceMs = nowMs - Math.max(this.#hotMs, toldMs);
    if (sinceMs >= HOT_MS) return undefined;
    return Math.min(Math.max(sinceMs / GAP_SHARE, MIN_GAP_MS), this.#maxGapMs);
  }
}
