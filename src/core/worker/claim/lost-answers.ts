import { lateAnswerTo } from '../statements/no-answer-error.ts';

/**
 * For this long after a claim whose answer was lost, the server may still be carrying it out, or get it: the
 * operating system goes on sending what a closed connection had not sent.
 */
const SUSPECT_MS = 16 * 60_000;
const FIRST_RELEASE_MS = 5_000;
/** Each release reads the whole table, and the later it is, the less likely a claim still arrives. */
const TIMES_LATER = 1.5;

/** When to give back what a claim whose answer was lost may have taken: its worker does not know of it. */
export class LostAnswers {
  readonly #onLate: () => void;
  #suspectUntilMs = Number.NEGATIVE_INFINITY;
  /** When the last release was over: on a large table it may itself take longer than the pause. */
  #releasedMs = Number.NEGATIVE_INFINITY;
  /** When it was last said that a release is due at once. */
  #urgedMs = Number.NEGATIVE_INFINITY;
  /** When an answer was last known to be lost. */
  #lostMs = Number.NEGATIVE_INFINITY;
  /** An answer was lost since the last release. */
  #owed = false;
  /** Until a release that came after all that the server may still do. */
  #suspected = false;
  #awaited = false;
  /** How long after a release the next one is due. */
  #pauseMs = FIRST_RELEASE_MS;
  /** Answers that were given up and may still come. */
  #late = 0;

  /** @param onLate called when an answer that was given up has come: what it brought is to be given back */
  constructor(onLate: () => void) {
    this.#onLate = onLate;
  }

  /** Waits for the answer to a claim, and learns when that is lost, or a part of it. */
  async answerTo<T extends { readonly failure?: unknown }>(claim: Promise<T>): Promise<T> {
    this.#awaited = true;
    try {
      const answer = await claim;
      if (answer.failure !== undefined) this.#noteLost(answer.failure);
      return answer;
    } catch (error) {
      this.#noteLost(error);
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

  /** Jobs may be held for another reason that this worker does not know of: one release is due at once. */
  suspect(): void {
    this.#urgedMs = performance.now();
    this.#releasedMs = Number.NEGATIVE_INFINITY;
    this.#owed = true;
    this.#suspected = true;
  }

  /** In how many milliseconds to give back; `Infinity` where there is nothing to. */
  releaseInMs(nowMs: number): number {
    if (!this.#suspected) return Number.POSITIVE_INFINITY;
    return Math.max(this.#releasedMs + this.#pauseMs - nowMs, 0);
  }

  /**
   * @param beganMs what came up since then, it may have missed
   * @returns whether it has found all that it was {@link suspect suspected} for
   */
  noteRelease(beganMs: number, endedMs: number): boolean {
    if (this.#urgedMs >= beganMs) return false;
    this.#releasedMs = endedMs;
    if (this.#lostMs >= beganMs) return true;
    if (!this.#owed) this.#pauseMs *= TIMES_LATER;
    this.#owed = false;
    this.#suspected = this.#late > 0 || beganMs <= this.#suspectUntilMs;
    return true;
  }

  #noteLost(error: unknown): void {
    this.#lostMs = performance.now();
    this.#suspectUntilMs = this.#lostMs + SUSPECT_MS;
    this.#pauseMs = FIRST_RELEASE_MS;
    this.#owed = true;
    this.#suspected = true;
    const late = lateAnswerTo(error);
    if (late === undefined) return;
    this.#late++;
    void late.then(() => {
      this.#late--;
      // The server is done with it.
      this.suspect();
      this.#onLate();
    });
  }
}
