import { type AsyncContext, asyncContext } from '../../../core/runtime.ts';
import { resultWithin } from '../../../core/time/resolves-within.ts';
import { LockedElsewhere } from './locked-elsewhere.ts';

/** After this it may be that the one whose turn it is waits for the one that waits for the turn. */
const PATIENCE_MS = 2_000;
/** Whose turn the current code is part of. Asked for once: a browser has none. */
let insideTurns: AsyncContext<ConnectionTurns> | undefined;

/** What a step does on the connection, from its savepoint to the end of that, or one statement. */
interface ConnectionTurn {
  /** Something else has come between its statements, or it between those of something else. */
  isMixed: boolean;
}

/**
 * Lets what steps side by side do on the one connection of `runNext` come one after the other. PostgreSQL
 * nests savepoints: the rollback of one undoes all that was sent since it began, and so what other steps have
 * written and recorded meanwhile, although these have returned.
 *
 * The function of a `step.transaction` may wait for a step beside it, which waits for its turn. So that one
 * goes on in the savepoint of the other after a while. If either then fails, so does the attempt.
 */
export class ConnectionTurns {
  readonly #inside: AsyncContext<ConnectionTurns> | undefined;
  readonly #onUndone: (error: unknown) => void;
  readonly #underWay = new Set<ConnectionTurn>();
  #last: Promise<unknown> | undefined;

  /** @param onUndone is told why what other steps have written is undone */
  constructor(onUndone: (error: unknown) => void) {
    insideTurns ??= asyncContext<ConnectionTurns>();
    this.#inside = insideTurns;
    this.#onUndone = onUndone;
  }

  async take<T>(task: () => Promise<T>): Promise<T> {
    // It belongs to what has the turn, as a look at its parents does in the function of a step.
    if (this.#inside?.getStore() === this) return await task();
    const before = this.#last;
    const turn =
      before === undefined ? this.#run(task) : resultWithin(before, PATIENCE_MS).then(() => this.#run(task));
    const over = Promise.allSettled([before, turn]);
    this.#last = over;
    try {
      return await turn;
    } finally {
      if (this.#last === over) this.#last = undefined;
    }
  }

  async #run<T>(task: () => Promise<T>): Promise<T> {
    const turn: ConnectionTurn = { isMixed: this.#underWay.size > 0 };
    for (const other of this.#underWay) other.isMixed = true;
    this.#underWay.add(turn);
    try {
      return await (this.#inside === undefined ? task() : this.#inside.run(this, task));
    } catch (error) {
      // What another transaction has locked undoes nothing.
      if (turn.isMixed && !(error instanceof LockedElsewhere)) this.#onUndone(error);
      throw error;
    } finally {
      this.#underWay.delete(turn);
    }
  }
}
