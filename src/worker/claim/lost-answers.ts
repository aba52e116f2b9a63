/** For this long after a claim whose answer was lost, the server may still be carrying it out. */
const SUSPECT_MS = 60_000;
const RELEASE_EVERY_MS = 5_000;

/** When to give back what a claim whose answer was lost may have taken: nobody knows that it is held. */
export class LostAnswers {
  #suspectUntilMs = Number.NEGATIVE_INFINITY;
  #releasedMs = Number.NEGATIVE_INFINITY;
  /** An answer was lost since the last release. */
  #owed = false;
  /** Until a release that came after all that the server may still do. */
  #suspected = false;
  #awaited = false;

  /** Waits for the answer to a claim, and learns when that is lost, or a part of it. */
  async answerTo<T extends { readonly failure?: unknown }>(claim: Promise<T>): Promise<T> {
    this.#awaited = true;
    try {
      const answer = await claim;
      if (answer.failure !== undefined) this.#noteLost();
      return answer;
    } catch (error) {
      this.#noteLost();
      throw error;
    } finally {
      this.#awaited = false;
    }
  }

  /** Whether jobs may be held that this worker does not know of. */
  get suspected(): boolean {
    return this.#awaited || this.#suspected;
  }

  /** Whether nothing was given back since an answer was lost. */
  get owed(): boolean {
    return this.#owed;
  }

  /** In how many milliseconds to give back; `Infinity` where there is nothing to. */
  releaseInMs(nowMs: number): number {
    if (!this.#suspected) return Number.POSITIVE_INFINITY;
    return Math.max(this.#releasedMs + RELEASE_EVERY_MS - nowMs, 0);
  }

  /** @param nowMs when it began */
  noteRelease(nowMs: number): void {
    this.#releasedMs = nowMs;
    this.#owed = false;
    this.#suspected = nowMs <= this.#suspectUntilMs;
  }

  #noteLost(): void {
    this.#suspectUntilMs = performance.now() + SUSPECT_MS;
    this.#owed = true;
    this.#suspected = true;
  }
}
