/** For so long after a claim whose answer was lost, the server may still be carrying it out. */
const SUSPECT_MS = 60_000;
const RELEASE_EVERY_MS = 5_000;

/** When to give back what a claim may have taken whose answer never came: those jobs are held by nobody who knows. */
export class LostAnswers {
  #suspectUntilMs = 0;
  #nextReleaseMs = 0;

  /** A claim's answer was lost. `nowMs` is any monotonic clock. */
  note(nowMs: number): void {
    this.#suspectUntilMs = nowMs + SUSPECT_MS;
  }

  releaseIsDue(nowMs: number): boolean {
    return nowMs <= this.#suspectUntilMs && nowMs >= this.#nextReleaseMs;
  }

  noteRelease(nowMs: number): void {
    this.#nextReleaseMs = nowMs + RELEASE_EVERY_MS;
  }
}
