import { MAX_TIMER_MS } from '../../job/limits.ts';

/** Times closer together than this share an alarm: a thousand retries within two seconds make at most 250. */
const GRAIN_MS = 8;

/** Calls a function at each of several times, by one timer. */
export class Alarms {
  readonly #ring: () => void;
  /** Of the monotonic clock. */
  readonly #timesMs = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  #nextMs = Number.POSITIVE_INFINITY;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  /** Rings in this many milliseconds, or a few later. */
  add(inMs: number): void {
    // Timers may be a moment early.
    const atMs = Math.ceil((performance.now() + inMs + 1) / GRAIN_MS) * GRAIN_MS;
    this.#timesMs.add(atMs);
    if (atMs < this.#nextMs) this.#set(atMs);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timesMs.clear();
    this.#nextMs = Number.POSITIVE_INFINITY;
  }

  #set(atMs: number): void {
    clearTimeout(this.#timer);
    this.#nextMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    const inMs = Math.max(Math.ceil(atMs - performance.now()), 0);
    this.#timer = setTimeout(() => this.#go(), Math.min(inMs, MAX_TIMER_MS));
  }

  #go(): void {
    const nowMs = performance.now();
    let rings = false;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const atMs of this.#timesMs) {
      if (atMs > nowMs) {
        nextMs = Math.min(nextMs, atMs);
      } else {
        this.#timesMs.delete(atMs);
        rings = true;
      }
    }
    this.#set(nextMs);
    if (rings) this.#ring();
  }
}
