import { MAX_WAIT_MS } from './prefetch.ts';

/** What cannot be given back yet, since a statement about it is under way, is looked at again after this. */
const AGAIN_MS = 50;

/**
 * Notices when something claimed ahead does not begin, even if others do: what was claimed after it, by this
 * worker or by others, should not wait for thousands. One timer for all: one per job would cost as much as
 * the job.
 */
export class Patience {
  readonly #since: () => number;
  readonly #onLost: (sinceMs: number) => void;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param since when the one that has waited longest for a slot began to, by the monotonic clock;
   *   `Infinity` if none waits
   * @param onLost called when something has waited for too long: since this time, or before
   */
  constructor(since: () => number, onLost: (sinceMs: number) => void) {
    this.#since = since;
    this.#onLost = onLost;
  }

  /** Something waits. */
  watch(): void {
    this.#timer ??= setTimeout(() => this.#check(), MAX_WAIT_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #check(): void {
    this.#timer = undefined;
    const longestMs = performance.now() - MAX_WAIT_MS;
    if (this.#since() <= longestMs) this.#onLost(longestMs);
    const leftMs = this.#since() - longestMs;
    if (Number.isFinite(leftMs)) this.#timer = setTimeout(() => this.#check(), Math.max(leftMs, AGAIN_MS));
  }
}
