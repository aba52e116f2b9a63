import { uptimeMs } from '../../runtime.ts';

/** When something was, measured so that also the time counts in which the machine was suspended since. */
export class Moment {
  readonly ms = performance.now();
  readonly #clockMs = Date.now();
  readonly #upMs = uptimeMs();

  /** Whether that is more than `ms` milliseconds ago. */
  isPast(ms: number): boolean {
    if (performance.now() - this.ms > ms) return true;
    // On Linux that clock stands still in a suspend. The host's does not, but it may have been set; the
    // uptime is neither, but reading it takes 10 µs.
    return Date.now() - this.#clockMs > ms && uptimeMs() - this.#upMs > ms;
  }
}
