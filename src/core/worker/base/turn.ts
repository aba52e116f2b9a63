import { onNextTurn } from '../../runtime.ts';

/** After this many beginnings the event loop gets a turn. */
const MAX_PER_TURN = 100;

/**
 * Counts what begins in one turn of the event loop. Handlers that wait for nothing would all run before the
 * next claim and the settlements reach the socket, and database and process would take turns.
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
    onNextTurn(() => {
      this.#begun = 0;
      this.#onNext();
    });
  }
}
