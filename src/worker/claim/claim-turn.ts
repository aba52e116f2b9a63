import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import { resultWithin } from '../../time/resolves-within.ts';

/** From so many jobs on a claim takes a turn. Smaller ones are over before they are in another's way. */
const MANY = 500;
/** Longer than a claim of thousands takes on a busy machine. After it others go on beside one that hangs. */
const MAX_TURN_MS = 1_000;

const turns = new WeakMap<Database, WeakMap<QueueTables, Map<string, ClaimTurn>>>();

/**
 * Lets the large claims of one queue by the workers of one process follow each other, and no other claim go
 * beside one. A claim that began before another has committed locks and leaves, one by one, all the rows that
 * the other has taken, and these cannot be settled before it ends. This is a hint only: whatever claims meet,
 * the locks of the rows decide.
 */
export class ClaimTurn {
  /** Fulfilled when the last large claim has an answer, or has had its time. */
  #last: Promise<void> | undefined;

  /** Where the workers of a process meet that share a database object. */
  static of(db: Database, tables: QueueTables, queue: string): ClaimTurn {
    const ofDb = turns.get(db) ?? new WeakMap<QueueTables, Map<string, ClaimTurn>>();
    turns.set(db, ofDb);
    const ofTables = ofDb.get(tables) ?? new Map<string, ClaimTurn>();
    ofDb.set(tables, ofTables);
    const turn = ofTables.get(queue) ?? new ClaimTurn();
    ofTables.set(queue, turn);
    return turn;
  }

  /** Sends a claim of at most `limit` jobs when it is its turn. */
  take<T>(limit: number, claim: () => Promise<T>): Promise<T> {
    const last = this.#last;
    const mine = last === undefined ? claim() : last.then(claim);
    if (limit < MANY) return mine;
    const end = () => {
      if (this.#last === turn) this.#last = undefined;
    };
    const over = mine.then(end, end);
    // Its time runs from its own beginning, whoever waits: no claim waits again for one that hangs.
    const turn = Promise.resolve(last)
      .then(() => resultWithin(over, MAX_TURN_MS))
      .then(end);
    this.#last = turn;
    return mine;
  }
}
