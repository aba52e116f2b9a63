import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import { perDatabase } from '../../sql/per-database.ts';
import { resultWithin } from '../../time/resolves-within.ts';

/** From this many jobs on, a claim takes a turn. Smaller ones are over before they are in another's way. */
const MANY = 500;
/** Longer than a claim of thousands takes on a busy machine. After it others go on beside one that hangs. */
const MAX_TURN_MS = 1_000;

/** The last large claim of each queue that has one under way: the names of queues may be without end. */
type Turns = Map<string, Turn>;

const turnsOf = /* @__PURE__ */ perDatabase((): Turns => new Map());

/** The turn of one large claim. Only waiting claims need a timer, and most never wait. */
interface Turn {
  /** Fulfilled when it may begin. */
  readonly ready: Promise<void> | undefined;
  beganMs: number;
  /** Fulfilled when its claim has an answer. */
  readonly over: Promise<void>;
}

/**
 * Lets the large claims of one queue by the workers of one process follow each other, and no other claim go
 * beside one. A claim that began before another has committed locks and leaves, one by one, all the rows that
 * the other has taken, and these cannot be settled before it ends. This is a hint only: whatever claims meet,
 * the locks of the rows decide.
 */
export class ClaimTurn {
  readonly #queue: string;
  readonly #turns: Turns;

  constructor(queue: string, turns: Turns) {
    this.#queue = queue;
    this.#turns = turns;
  }

  /** Where the workers of a process meet that share a database object. */
  static of(db: Database, tables: QueueTables, queue: string): ClaimTurn {
    return new ClaimTurn(queue, turnsOf(db, tables));
  }

  /** Sends a claim of at most `limit` jobs when it is its turn. */
  take<T>(limit: number, claim: () => Promise<T>): Promise<T> {
    const last = this.#turns.get(this.#queue);
    const ready = last === undefined || leftMs(last) <= 0 ? undefined : passed(last);
    const begin = () => {
      turn.beganMs = performance.now();
      return claim();
    };
    const turn = { ready, beganMs: Number.POSITIVE_INFINITY };
    const mine = ready === undefined ? begin() : ready.then(begin);
    if (limit < MANY) return mine;
    const end = () => {
      if (this.#turns.get(this.#queue) === large) this.#turns.delete(this.#queue);
    };
    const large = Object.assign(turn, { over: mine.then(end, end) });
    this.#turns.set(this.#queue, large);
    return mine;
  }
}

/**
 * The time counts from when the turn began, for every waiting claim: no claim waits again for a turn that
 * hangs.
 */
function leftMs({ beganMs }: Turn): number {
  return beganMs + MAX_TURN_MS - performance.now();
}

async function passed(turn: Turn): Promise<void> {
  await turn.ready;
  const ms = leftMs(turn);
  if (ms > 0) await resultWithin(turn.over, ms);
}
