import { sleep } from './sleep.ts';

/** The sleeps between a worker's tries. All end when one try finds that the database answers again. */
export class Retries {
  readonly #sleeps = new Set<AbortController>();

  /** Sleeps `ms` milliseconds, or until aborted; returns whether a try is worthwhile. Never rejects. */
  async sleep(ms: number, signal: AbortSignal): Promise<boolean> {
    const now = new AbortController();
    const end = () => now.abort();
    // Not `AbortSignal.any`: on Node.js 20 it leaks memory on a signal that lives as long as the worker.
    signal.addEventListener('abort', end);
    this.#sleeps.add(now);
    if (!signal.aborted) await sleep(ms, now.signal);
    this.#sleeps.delete(now);
    signal.removeEventListener('abort', end);
    return now.signal.aborted && !signal.aborted;
  }

  /** Ends all sleeps: without this a worker would be idle for up to 5 more seconds after an outage. */
  now(): void {
    for (const sleeping of this.#sleeps) sleeping.abort();
  }
}
