/** For this long after a claim whose answer was lost, the server may still be carrying it out. */
const SUSPECT_MS = 60_000;
const RELEASE_EVERY_MS = 5_000;

/** When to give back what a claim whose answer was lost may have taken: nobody knows that it is held. */
export class LostAnswers {
  #suspectUntilMs = 0;
  #nextReleaseMs = 0;
  #awaited = false;

  /** Waits for the answer to a claim, and learns when that is lost. */
  async answerTo<T>(claim: Promise<T>): Promise<T> {
    this.#awaited = true;
    try {
      return await claim;
    } catch (error) {
      this.#suspectUntilMs = performance.now() + SUSPECT_MS;
      throw error;
    } finally {
      this.#awaited = false;
    }
  }

  /** Whether jobs may be held that this worker does not know of. */
  suspected(nowMs: number): boolean {
    return this.#awaited || nowMs <= this.#suspectUntilMs;
  }

  releaseIsDue(nowMs: number): boolean {
    return this.suspected(nowMs) && nowMs >= this.#nextReleaseMs;
  }

  noteRelease(nowMs: number): void {
    this.#nextReleaseMs = nowMs + RELEASE_EVERY_MS;
  }
}
