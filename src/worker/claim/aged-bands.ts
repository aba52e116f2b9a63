import { MAX_PRIORITY } from '../../job/limits.ts';
import type { Band } from '../../queries/claim-jobs.ts';

/** A queue's aging, and when it is, by the clock of the database: in milliseconds since 1970. */
export interface AgingNow {
  readonly afterMs: number;
  readonly nowMs: number;
}

/**
 * The bands of a claim in a queue with aging, split where jobs begin to count as a better priority. Those that
 * count as the same one stand in the order of their age: exactly, or among those that count as 0 in slices of
 * `afterMs`, in each of which the more urgent priorities come first. So an old job of priority 9 goes before
 * the young ones of priority 0, and a heap of the former does not go before an old one of the latter.
 *
 * The bands of a priority follow each other without a gap from its floor on, so no two have a job in common.
 * Where no band has to be split, they are those of a queue without aging.
 */
export function agedBands(floorsMs: readonly number[], { afterMs, nowMs }: AgingNow): Band[] {
  const bands: Band[] = [];
  const reachedMs = [...floorsMs];
  const atMs = Math.floor(nowMs);
  const dueFor = (ages: number): number => atMs - ages * afterMs;
  const oldMs = dueFor(MAX_PRIORITY);

  // Where no claim has been yet, its first job is not known: after one claim it is.
  for (let priority = 0; priority <= MAX_PRIORITY; priority++) {
    if (reachedMs[priority] === Number.NEGATIVE_INFINITY) add(priority, oldMs);
  }
  // Before this time all have aged. From each floor on, where the jobs are, a slice is twice as long as the one
  // before: so a floor from long ago is soon past.
  const oldFloorsMs = reachedMs.filter((floorMs) => floorMs < oldMs).sort((a, b) => a - b);
  for (const [at, floorMs] of oldFloorsMs.entries()) {
    const endMs = oldFloorsMs[at + 1] ?? oldMs;
    for (let lengthMs = afterMs; floorMs + lengthMs < endMs; lengthMs *= 2) addAll(floorMs + lengthMs);
    addAll(endMs);
  }
  for (let ages = MAX_PRIORITY - 1; ages >= 0; ages--) {
    for (let priority = 0; priority <= ages; priority++) add(priority, until(ages));
  }
  for (let aged = 1; aged <= MAX_PRIORITY; aged++) {
    for (let priority = MAX_PRIORITY; priority >= aged; priority--) add(priority, until(priority - aged));
  }
  return bands;

  /** What becomes due from here on has not aged; the clock of the database has gone on meanwhile. */
  function until(ages: number): number {
    return ages === 0 ? Number.POSITIVE_INFINITY : dueFor(ages);
  }

  function addAll(ceilingMs: number): void {
    for (let priority = 0; priority <= MAX_PRIORITY; priority++) add(priority, ceilingMs);
  }

  /** Adds what is left of a priority up to a time. */
  function add(priority: number, ceilingMs: number): void {
    const floorMs = reachedMs[priority] ?? Number.POSITIVE_INFINITY;
    if (floorMs >= ceilingMs) return;
    const isLast = ceilingMs === Number.POSITIVE_INFINITY;
    bands.push(isLast ? { priority, floorMs } : { priority, floorMs, ceilingMs });
    reachedMs[priority] = ceilingMs;
  }
}
