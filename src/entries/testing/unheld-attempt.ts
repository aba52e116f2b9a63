import { LeaseLostError, type Transaction } from '../../index.ts';
import { Attempt, HAS_COMMITTED, outputToStore } from '../../testing-face.ts';

/** An attempt of a job that is in no database: `complete(tx)` keeps its output and writes nothing. */
export class UnheldAttempt extends Attempt {
  #completed: string | undefined;

  /** The JSON text that `complete` was given. */
  get completed(): string | undefined {
    return this.#completed;
  }

  override get completeRan(): boolean {
    return this.#completed !== undefined;
  }

  override async complete(_tx: Transaction, output: unknown): Promise<void> {
    const { job, handler } = this;
    this.checkOpen();
    // What an output schema takes is checked by it.
    const json = await this.until(outputToStore(handler.job, output));
    this.checkOpen();
    if (this.#completed !== undefined) throw new LeaseLostError(job.kind, job.id, HAS_COMMITTED);
    this.#completed = json;
  }
}
