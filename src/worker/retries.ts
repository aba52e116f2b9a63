import { pause } from './pause.ts';

/** The pauses between the tries of one worker, all of which end when one of them has found that the database answers again. */
export class Retries {
  #now = new AbortController();

  /** Waits `ms` milliseconds, until a try is worth its while, or until the signal is aborted. Never rejects; answers whether it is. */
  async pause(ms: number, signal: AbortSignal): Promise<boolean> {
    const now = this.#now.signal;
    await pause(ms, AbortSignal.any([signal, now]));
    return now.aborted;
  }

  /** Ends all pauses: without this a worker would be idle for up to 5 more seconds after an outage. */
  now(): void {
    this.#now.abort();
    this.#now = new AbortController();
  }
}
