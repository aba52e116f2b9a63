import { describeThrown } from '../../internal.ts';
import type { Telling } from '../filter/leave-refused.ts';

/** How many jobs are changed at a time. */
export const BATCH = 1_000;
/** A request works for about this long; then its page says how far it has come. */
const BUDGET_MS = 3_000;

/** What is done so far with many jobs. */
export interface Progress {
  /** How many have been tried, and with how many it was done. */
  readonly tried: number;
  readonly done: number;
  /** The last id that was tried. */
  readonly after: number;
}

/** What one request came to. */
export interface Stretch extends Progress {
  /** `slow`: looking for more took too long. */
  readonly end: 'all' | 'more' | 'slow';
  /** The jobs of this request. */
  readonly ids: readonly number[];
}

/** What is done with many jobs. */
export interface Work {
  /** The ids of the first {@link BATCH} behind this one, in order; `undefined` when looking took too long. */
  find(after: number): Promise<readonly number[] | undefined>;
  /** Tells for how many of them it was done. */
  act(ids: readonly number[], telling: Telling<number>): Promise<void>;
}

/** Does it batch by batch, oldest ids first, from where an earlier request has ended. */
export async function doStretch(before: Progress, { find, act }: Work): Promise<Stretch> {
  const endMs = performance.now() + BUDGET_MS;
  const all: number[] = [];
  let { tried, done, after } = before;
  const soFar = (end: Stretch['end']): Stretch => ({ tried, done, after, ids: all, end });
  for (;;) {
    let ids: readonly number[] | undefined;
    let doneOfThese = 0;
    let hasFailed = false;
    const note = (jobs: number) => {
      doneOfThese += jobs;
    };
    const refused = new Map<number, unknown>();
    let endedAt: number | undefined;
    // Each request comes some way, else the next one would do no better.
    const mayGoOn = (behind: number | undefined) => {
      if (behind !== undefined && performance.now() > endMs) endedAt = behind;
      return endedAt === undefined;
    };
    try {
      ids = await find(after);
      if (ids === undefined) return soFar('slow');
      const telling = { note, refused: (id: number, error: unknown) => refused.set(id, error), mayGoOn };
      if (ids.length > 0) await act(ids, telling);
    } catch (error) {
      // The jobs that are done are reported; the next request meets the error again, if it persists.
      if (all.length + doneOfThese === 0) throw error;
      if (ids === undefined || doneOfThese === 0) return soFar('more');
      hasFailed = true;
    } finally {
      complain(refused);
    }
    // By the database: a try that was refused may have changed jobs of another queue behind that one. Where
    // that is too slow or fails, the place has to do, and behind a failure all of them are named.
    const behind = hasFailed ? after : endedAt;
    const rest = behind === undefined ? undefined : await find(behind).catch(() => undefined);
    const these = ids.filter((id) => (rest ? !rest.includes(id) : id <= (endedAt ?? id)));
    all.push(...these);
    tried += hasFailed ? doneOfThese : Math.max(these.length, doneOfThese);
    done += doneOfThese;
    if (hasFailed) return soFar('more');
    after = endedAt ?? ids.at(-1) ?? after;
    if (endedAt === undefined && ids.length < BATCH) return soFar('all');
    if (performance.now() > endMs) return soFar('more');
  }
}

/** In one line: it may refuse a thousand for the same reason. */
function complain(refused: ReadonlyMap<number, unknown>): void {
  const [first] = refused;
  if (first === undefined) return;
  const [id, error] = first;
  const others = refused.size > 1 ? ` and ${refused.size - 1} more` : '';
  console.error(
    `drizzle-queue dashboard: the database refused to change job ${id}${others}:`,
    describeThrown(error),
  );
}
