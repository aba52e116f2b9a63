/** After this long without a free slot, what was claimed ahead is given back: another worker may have one. */
const MAX_WAIT_MS = 500;

/**
 * Notices when nothing claimed ahead begins. One timer for all: one per job would cost as much as the job.
 */
export class Patience {
  readonly #onLost: () => void;
  #timer: NodeJS.Timeout | undefined;
  #lastBeganMs = 0;

  /** @param onLost called when something has waited for too long */
  constructor(onLost: () => void) {
    this.#onLost = onLost;
  }

  /** A job has begun: while some do, the others are right to wait. */
  noteBeginning(): void {
    this.#lastBeganMs = performance.now();
  }

  /** Something waits. */
  watch(): void {
    this.#timer ??= setTimeout(() => this.#check(), MAX_WAIT_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #check(): void {
    const waitedMs = performance.now() - this.#lastBeganMs;
    this.#timer = undefined;
    if (waitedMs >= MAX_WAIT_MS) this.#onLost();
    else this.#timer = setTimeout(() => this.#check(), MAX_WAIT_MS - waitedMs);
  }
}
