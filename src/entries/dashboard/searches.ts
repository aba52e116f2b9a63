import type { QueueTables } from '../../core/schema/index.ts';
import type { Database } from '../../index.ts';
import { type JobSearch, Rest, sqlStateOf } from '../../internal.ts';
import type { Cursor } from './find-jobs.ts';
import { type Look, within } from './looks.ts';
import { type Turns, turnsOf } from './turns.ts';

/** How many answers are kept, and how many of one viewer. */
const KEPT = 200;
const KEPT_OF_VIEWER = 20;

/** Each search, asked for again and again by an open page, takes two thirds of a percent of the time. */
const TIMES = 150;
const BURST_MS = 50;
const MAX_REST_MS = 300_000;
/** What a search takes at most that reads a few rows by an index: more is time that it has waited. */
export const FEW_ROWS_MS = 20;

/** `untranslatable_character` and `character_not_in_repertoire`: no row has such a text. */
const OF_ENCODING: ReadonlySet<string> = new Set(['22P05', '22021']);

/** A value of a filter cannot be compared with its column, as PostgreSQL says. */
export class UnfitValueError extends Error {}

/**
 * What `ask` finds by a viewer's filter and cursor.
 *
 * @throws UnfitValueError where PostgreSQL refuses a value, and a value of theirs can be the one: it takes
 * every id, and for a column of texts every text in the encoding of the database
 */
export async function askWith<T>(
  { search, cursor }: { readonly search: JobSearch; readonly cursor?: Cursor | undefined },
  ask: () => Promise<T>,
): Promise<T> {
  const { own, payload, createdAfter, createdBefore } = search;
  const hasTime =
    (createdAfter ?? createdBefore) !== undefined || (cursor !== undefined && 'after' in cursor);
  const mayBeUnfit = own.length > 0 || payload.length > 0 || hasTime;
  try {
    return await ask();
  } catch (error) {
    const state = sqlStateOf(error);
    // Class 22: a text that is not a number for its column, a number out of range, and the like.
    if (mayBeUnfit && state?.startsWith('22')) throw new UnfitValueError();
    if (state !== undefined && OF_ENCODING.has(state)) throw new UnfitValueError();
    throw error;
  }
}

/** What a viewer is told then. */
export const UNFIT =
  'PostgreSQL cannot compare a value of this filter with its column: a number may be too large, a word is ' +
  'not a value of the type, or a character is not in the encoding of the database.';

/** What a search has found, and when. */
export interface Found<T> {
  readonly value: T;
  readonly at: Date;
}

interface Known {
  readonly viewer: string;
  readonly rest: Rest;
  tookMs?: number;
  last?: { readonly found: Found<unknown> | undefined; readonly until: number };
  flight?: Promise<Found<unknown> | undefined>;
}

/**
 * Looks whose names contain what viewers write: filters, ids, cursors. Equal ones are shared by all viewers,
 * rest each by itself, and take turns. New names from one viewer push out answers of that viewer only.
 */
export class Searches {
  readonly #db: Database;
  readonly #tables: QueueTables;
  readonly #turns: Turns;
  readonly #known = new Map<string, Known>();

  constructor(db: Database, tables: QueueTables) {
    this.#db = db;
    this.#tables = tables;
    this.#turns = turnsOf(db);
  }

  /**
   * What `look` finds, or has found before; `undefined` when a statement took longer than `timeoutMs`.
   * It rests from the shorter of its last two: one that is slow alone has waited, or was the first.
   *
   * @param mostMs how long it takes at most where nothing is in its way; it does not rest from more
   * @throws TooManySearchesError when the viewer has too many that wait
   * @throws the driver's errors, which are not kept
   */
  async at<T>(
    viewer: string,
    name: string,
    timeoutMs: number,
    look: Look<T>,
    mostMs = Number.POSITIVE_INFINITY,
  ): Promise<Found<T> | undefined> {
    const known = this.#of(viewer, name);
    if (known.last === undefined || performance.now() >= known.last.until) {
      known.flight ??= this.#ask(viewer, known, timeoutMs, look, mostMs).finally(() => {
        delete known.flight;
      });
      await known.flight;
    }
    // The name says what kind of value it is.
    return known.last?.found as Found<T> | undefined;
  }

  /** Forgets all results, so that a user who has just changed something finds the change. */
  forget(): void {
    this.#known.clear();
  }

  async #ask(
    viewer: string,
    known: Known,
    timeoutMs: number,
    look: Look<unknown>,
    mostMs: number,
  ): Promise<Found<unknown> | undefined> {
    return await this.#turns.take(viewer, async () => {
      const [startMs, at] = [performance.now(), new Date()];
      const answer = await within(this.#db, this.#tables, timeoutMs, async (tx, seenAt) => ({
        value: await look(tx, seenAt),
      }));
      const found = answer && { ...answer, at };
      const tookMs = performance.now() - startMs;
      known.rest.mostMs = Math.min(mostMs, known.tookMs ?? FEW_ROWS_MS);
      known.tookMs = tookMs;
      known.last = { found, until: known.rest.after(tookMs) };
      return found;
    });
  }

  #of(viewer: string, name: string): Known {
    const known = this.#known.get(name) ?? { viewer, rest: new Rest(TIMES, BURST_MS, MAX_REST_MS) };
    // The last one is the one that was used last.
    this.#known.delete(name);
    this.#known.set(name, known);
    const own = [...this.#known].filter(([, each]) => each.viewer === viewer);
    const [oldest] = own.length > KEPT_OF_VIEWER ? own : [...this.#known];
    if (oldest !== undefined && (own.length > KEPT_OF_VIEWER || this.#known.size > KEPT)) {
      this.#known.delete(oldest[0]);
    }
    return known;
  }
}
