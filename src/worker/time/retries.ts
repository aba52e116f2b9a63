import { sleep } from './sleep.ts';

/** The pauses between the tries of one worker, all of which end when one of them has found that the database answers again. */
export class Retries {
  readonly #sleeps = new Set<AbortController>();

  /**
   * Waits `ms` milliseconds, until a try is worth its while, or until the signal is aborted. Never rejects; answers whether a try is
   * worth its while.
   */
  async sleep(ms: number, signal: AbortSignal): Promise<boolean> {
    const now = new AbortController();
    const end = () => now.abort();
    // Not `AbortSignal.any`: on Node.js 20 each leaves a trace on a signal that lives as long as the worker.
    signal.addEventListener('abort', end);
    this.#sleeps.add(now);
    if (!signal.aborted) await sleep(ms, now.signal);
    this.#sleeps.delete(now);
    signal.removeEventListener('abort', end);
    return now.signal.aborted && !signal.aborted;
  }

  /** Ends all pauses: without this a worker would be idle for up to 5 more seconds after an outage. */
  now(): void {
    for (const sleeping of this.#sleeps) sleeping.abort();
  }
}
