import { MAX_TIMER_MS } from '../job/limits.ts';

/** Something to wait for. A signal without a waiter ends the next wait at once, so none is lost. */
export class Condition {
  #signalled = false;
  readonly #waiting = new Set<() => void>();

  get signalled(): boolean {
    return this.#signalled;
  }

  /** Ends all current waits, or else the next one. */
  signal(): void {
    if (this.#waiting.size === 0) this.#signalled = true;
    for (const end of [...this.#waiting]) end();
  }

  /** Forgets a signal that is about to be acted on. */
  clear(): void {
    this.#signalled = false;
  }

  /** Waits at most `ms` milliseconds, or until `over` is aborted; returns whether there was a signal. */
  async wait(ms = Number.POSITIVE_INFINITY, over?: AbortSignal): Promise<boolean> {
    if (over?.aborted) return false;
    if (this.#signalled) {
      this.#signalled = false;
      return true;
    }
    return await new Promise((resolve) => {
      const end = (signalled: boolean) => {
        clearTimeout(timer);
        over?.removeEventListener('abort', onOver);
        this.#waiting.delete(onSignal);
        resolve(signalled);
      };
      const onSignal = () => end(true);
      const onOver = () => end(false);
      const timer = setTimeout(() => end(false), Math.min(ms, MAX_TIMER_MS));
      over?.addEventListener('abort', onOver);
      this.#waiting.add(onSignal);
    });
  }
}
