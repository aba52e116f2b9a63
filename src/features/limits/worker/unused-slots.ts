/** What was not used for so long is given back. */
const UNUSED_MS = 100;
/**
 * What is not used waits for the ends of so many claims first: the first may have been under way when it
 * became free, and was not for it.
 */
const CLAIMS_AWAITED = 2;

/** Since when some slots of a lease are not used, and how many were needed since. */
export class UnusedSlots {
  /** `Infinity`: all are used. */
  #sinceMs = Number.POSITIVE_INFINITY;
  /** The most that ran since. */
  #peak = 0;
  /** Whether a claim is under way, which may bring jobs for them. */
  #isClaiming = false;
  /** How many claims may still end before they are given back. */
  #awaited = 0;

  noteBegin(running: number, cap: number): void {
    this.#peak = Math.max(this.#peak, running);
    if (running >= cap) this.noteNone();
  }

  /** There are none, as all are used or the worker has none. */
  noteNone(): void {
    this.#sinceMs = Number.POSITIVE_INFINITY;
  }

  /** So many of `cap` are used. */
  note(running: number, cap: number, nowMs: number): void {
    if (running >= cap) this.noteNone();
    else if (this.#sinceMs === Number.POSITIVE_INFINITY) this.#restart(running, nowMs);
  }

  noteClaiming(): void {
    this.#isClaiming = true;
  }

  /** Returns whether some have waited for the end of the claim. */
  noteClaimed(nowMs: number): boolean {
    const have = this.#awaitClaim;
    this.#isClaiming = false;
    if (!have) return false;
    this.#awaited--;
    this.#sinceMs = nowMs;
    return true;
  }

  /** When to look again whether some are to be given back. */
  nextMs(nowMs: number): number | undefined {
    return this.#awaitClaim ? undefined : Math.min(this.#sinceMs, nowMs) + UNUSED_MS;
  }

  /** How many of `cap` to keep: all of them, or after some time as many as were needed. */
  lessThan(cap: number, running: number, nowMs: number): number {
    if (this.#awaitClaim || nowMs < this.#sinceMs + UNUSED_MS) return cap;
    const needed = Math.min(cap, this.#peak);
    this.#restart(running, nowMs);
    return needed;
  }

  get #awaitClaim(): boolean {
    return this.#isClaiming && this.#awaited > 0 && this.#sinceMs < Number.POSITIVE_INFINITY;
  }

  #restart(running: number, nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#peak = running;
    this.#awaited = CLAIMS_AWAITED;
  }
}
