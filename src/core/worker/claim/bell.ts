import { Condition } from '../../time/condition.ts';

/** What a bell has rung for. */
export interface Rung {
  /** Whether it was notified of a job. */
  readonly heard: boolean;
  /** Whether it was notified of all jobs that there may be. */
  readonly told: boolean;
}

/** Rings when there may be something to claim, and knows whether a notification said so. */
export class Bell {
  readonly #rung = new Condition();
  #told = false;
  #perhapsOthers = false;

  get signalled(): boolean {
    return this.#rung.signalled;
  }

  /** There may be something. */
  ring(): void {
    this.#rung.signal();
  }

  /** A job was notified. @param othersNotify if not, there may be jobs without a notification */
  tell(othersNotify: boolean): void {
    this.#told = true;
    if (!othersNotify) this.#perhapsOthers = true;
    this.#rung.signal();
  }

  /** Resets the bell; returns what it has rung for. */
  clear(): Rung {
    const rung = { heard: this.#told, told: this.#told && !this.#perhapsOthers };
    this.#rung.clear();
    this.#told = false;
    this.#perhapsOthers = false;
    return rung;
  }

  /** Resolves when it rings, at once if it has, or after `ms`. */
  async wait(ms?: number): Promise<void> {
    await this.#rung.wait(ms);
  }
}
