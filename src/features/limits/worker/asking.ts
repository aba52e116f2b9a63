import { jitter } from '../../../core/time/jitter.ts';

/** How soon a worker that got less than it wanted asks again; then less and less often. */
const FIRST_AGAIN_MS = 100;
const MAX_AGAIN_MS = 1_000;
/** With many workers all ask less often: each question reads what all of them have. */
const AGAIN_PER_WORKER_MS = 5;
/** Those that learn together of slots that may be free do not ask at the same instant. */
const SPREAD_MS = 20;

/** When a worker may ask for more slots. Times are of any monotonic clock. */
export class Asking {
  #againMs = FIRST_AGAIN_MS;
  #nextMs = Number.NEGATIVE_INFINITY;
  #refused = false;
  #isResting = false;

  /** Whether it got less than it wanted, the last time that it asked. */
  get refused(): boolean {
    return this.#refused;
  }

  get nextMs(): number {
    return this.#nextMs;
  }

  /** It got all that it wanted. */
  noteEnough(): void {
    this.#refused = false;
    this.#againMs = FIRST_AGAIN_MS;
  }

  /**
   * It got less than it wanted.
   * @param grew whether it has more than before
   * @param sharing how many workers share the limit
   */
  noteLess(grew: boolean, sharing: number, nowMs: number): void {
    this.#refused = true;
    if (grew) this.#againMs = FIRST_AGAIN_MS;
    this.#nextMs = nowMs + jitter(this.#againMs);
    this.#againMs = Math.min(this.#againMs * 2, Math.max(MAX_AGAIN_MS, sharing * AGAIN_PER_WORKER_MS));
  }

  /** It has had its turn: the others have theirs first. */
  rest(restMs: number, nowMs: number): void {
    this.#isResting = true;
    this.#nextMs = Math.max(this.#nextMs, nowMs + jitter(restMs));
  }

  /** No other worker lacks any. */
  endRest(nowMs: number): void {
    if (this.#isResting) this.soon(nowMs);
  }

  /** Some may be free that were not. */
  soon(nowMs: number): void {
    this.now(nowMs + Math.random() * SPREAD_MS);
  }

  /** One is free for this worker. */
  now(nowMs: number): void {
    this.#isResting = false;
    this.#againMs = FIRST_AGAIN_MS;
    this.#nextMs = Math.min(this.#nextMs, nowMs);
  }
}
