/** After so many beginnings the event loop gets a turn. */
const MAX_PER_TURN = 100;

/**
 * Counts what begins in one turn of the event loop. Handlers that wait for nothing would all run one after
 * the other before anything else does: the next claim and the settlements, though asked for, would reach the
 * socket only when the last has ended, and database and process would take turns.
 */
export class Turn {
  readonly #onNext: () => void;
  #begun = 0;

  /** @param onNext called at the next turn, when this one was full */
  constructor(onNext: () => void) {
    this.#onNext = onNext;
  }

  get isFull(): boolean {
    return this.#begun >= MAX_PER_TURN;
  }

  noteBeginning(): void {
    this.#begun++;
    if (this.#begun < MAX_PER_TURN) return;
    setImmediate(() => {
      this.#begun = 0;
      this.#onNext();
    });
  }
}
