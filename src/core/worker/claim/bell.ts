import type { Condition } from '../../time/condition.ts';

/** What a bell has rung for. */
export interface Rung {
  /** Whether it was notified of a job. */
  readonly heard: boolean;
  /** Whether it was notified of all jobs that there may be. */
  readonly told: boolean;
}

/** Rings when there may be something to claim, and knows whether a notification said so. */
export class Bell {
  readonly #heard: Condition;
  #signalled = false;
  #told = false;
  #perhapsOthers = false;

  /** @param heard signalled when it rings */
  constructor(heard: Condition) {
    this.#heard = heard;
  }

  get signalled(): boolean {
    return this.#signalled;
  }

  /** There may be something. */
  ring(): void {
    this.#signalled = true;
    this.#heard.signal();
  }

  /** A job was notified. @param othersNotify if not, there may be jobs without a notification */
  tell(othersNotify: boolean): void {
    this.#told = true;
    if (!othersNotify) this.#perhapsOthers = true;
    this.ring();
  }

  /** Resets the bell; returns what it has rung for. */
  clear(): Rung {
    const rung = { heard: this.#told, told: this.#told && !this.#perhapsOthers };
    this.#signalled = false;
    this.#told = false;
    this.#perhapsOthers = false;
    return rung;
  }
}
