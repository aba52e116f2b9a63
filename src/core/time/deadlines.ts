/** How often open deadlines are checked. */
const TICK_MS = 250;

/** One thing that is awaited. */
export interface Deadline {
  leftMs: number;
  readonly onPassed: () => void;
}

/**
 * The deadlines of a worker's statements, all on one timer. They run only while the event loop turns: an
 * answer that arrives while a handler blocks the loop, or while the process is stopped, cannot be read, so
 * that time is not held against the database.
 */
export class Deadlines {
  readonly #open = new Set<Deadline>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #tickedMs = 0;

  /** Calls `onPassed` after `ms` milliseconds, or up to two ticks later, unless it is {@link remove}d. */
  add(ms: number, onPassed: () => void): Deadline {
    // The first tick may come at once.
    const deadline = { leftMs: ms + TICK_MS, onPassed };
    this.#open.add(deadline);
    if (this.#timer === undefined) this.#wait();
    return deadline;
  }

  /** Returns whether it was still open. */
  remove(deadline: Deadline): boolean {
    return this.#open.delete(deadline);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#open.clear();
  }

  #wait(): void {
    this.#tickedMs = performance.now();
    this.#timer = setTimeout(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    this.#timer = undefined;
    // After a blocked loop, answers that have arrived are read before the next tick.
    const passedMs = Math.min(performance.now() - this.#tickedMs, 2 * TICK_MS);
    const passed: Deadline[] = [];
    for (const deadline of this.#open) {
      deadline.leftMs -= passedMs;
      if (deadline.leftMs <= 0) passed.push(deadline);
    }
    if (this.#open.size > 0) this.#wait();
    for (const deadline of passed) if (this.#open.delete(deadline)) deadline.onPassed();
  }
}
