import type { Database } from '../../index.ts';

/** How many connections of the app's pool, which has ten by default, searches use at once. */
const AT_ONCE = 2;
/** How many searches of one viewer, and of all, wait for their turn. */
const WAITING = 8;
const WAITING_OF_ALL = 100;

/** There are more searches than may wait. */
export class TooManySearchesError extends Error {
  constructor() {
    super('too many searches wait for their turn');
  }
}

interface Waiting {
  readonly viewer: string;
  begin(): void;
}

/**
 * Lets searches run a few at a time, and one at a time of each viewer, first come first served: however many
 * are asked for, the rest of the app keeps its connections.
 */
export class Turns {
  #running = 0;
  readonly #busy = new Set<string>();
  readonly #waiting: Waiting[] = [];

  /** Runs it when it is its turn. @throws TooManySearchesError when too many wait already */
  async take<T>(viewer: string, run: () => Promise<T>): Promise<T> {
    if (this.#running < AT_ONCE && !this.#busy.has(viewer)) this.#begin(viewer);
    else await this.#wait(viewer);
    try {
      return await run();
    } finally {
      this.#end(viewer);
    }
  }

  async #wait(viewer: string): Promise<void> {
    const own = this.#waiting.filter((each) => each.viewer === viewer).length;
    if (own >= WAITING || this.#waiting.length >= WAITING_OF_ALL) throw new TooManySearchesError();
    await new Promise<void>((begin) => this.#waiting.push({ viewer, begin }));
  }

  #begin(viewer: string): void {
    this.#running++;
    this.#busy.add(viewer);
  }

  #end(viewer: string): void {
    this.#running--;
    this.#busy.delete(viewer);
    const next = this.#waiting.findIndex((each) => !this.#busy.has(each.viewer));
    if (next < 0) return;
    for (const waiting of this.#waiting.splice(next, 1)) {
      this.#begin(waiting.viewer);
      waiting.begin();
    }
  }
}

const known = new WeakMap<Database, Turns>();

/** The turns of a database, shared by all dashboards of it in this process. */
export function turnsOf(db: Database): Turns {
  const turns = known.get(db) ?? new Turns();
  known.set(db, turns);
  return turns;
}
