import { MAX_PRIORITY } from '../../job/limits.ts';
import type { Band } from '../../queries/claim/claim-jobs.ts';

/** With this many bands, and one for each job to claim, what follows is not split: each takes 3 µs. */
const ENOUGH = 30;

export interface AgedClaim {
  readonly afterMs: number;
  /** By the clock of the database, in milliseconds since 1970. */
  readonly nowMs: number;
  /** How many jobs it is to take. */
  readonly limit: number;
}

/** The next part of a priority ends here. */
interface Part {
  readonly priority: number;
  readonly ceilingMs: number;
}

/**
 * The bands of a claim in a queue with aging, split where jobs begin to count as a better priority. Those
 * that count as the same one stand in the order of their age: exactly, or among those that count as 0 in
 * slices of `afterMs`, in each of which the more urgent priorities come first. So an old job of priority 9
 * goes before the young ones of priority 0, and a heap of the former does not go before an old one of the
 * latter.
 *
 * The bands of a priority follow each other without a gap from its floor on, so no two have a job in common.
 * Where no band has to be split, they are those of a queue without aging.
 */
export function agedBands(floorsMs: readonly number[], { afterMs, nowMs, limit }: AgedClaim): Band[] {
  const bands: Band[] = [];
  const reachedMs = [...floorsMs];
  const atMs = Math.floor(nowMs);
  const oldMs = atMs - MAX_PRIORITY * afterMs;
  for (const part of oldParts(floorsMs, afterMs, oldMs)) add(part);
  for (const part of youngParts(afterMs, atMs)) {
    if (bands.length >= ENOUGH + limit) break;
    add(part);
  }
  for (const part of upTo(Number.POSITIVE_INFINITY)) add(part);
  return bands;

  /** Adds what is left of a priority up to a time. */
  function add({ priority, ceilingMs }: Part): void {
    const floorMs = reachedMs[priority] ?? Number.POSITIVE_INFINITY;
    if (floorMs >= ceilingMs) return;
    const isLast = ceilingMs === Number.POSITIVE_INFINITY;
    bands.push(isLast ? { priority, floorMs } : { priority, floorMs, ceilingMs });
    reachedMs[priority] = ceilingMs;
  }
}

/** What all priorities have aged before counts as 0. */
function* oldParts(floorsMs: readonly number[], afterMs: number, oldMs: number): Generator<Part> {
  // Where no claim has been yet, the oldest job is not known: after one claim it is.
  for (const [priority, floorMs] of floorsMs.entries()) {
    if (floorMs === Number.NEGATIVE_INFINITY) yield { priority, ceilingMs: oldMs };
  }
  // A slice from each floor on, where the jobs are, and one up to the next floor. A claim that is filled by
  // one priority there puts that one's floor behind the older jobs of the others.
  const startsMs: number[] = [];
  for (const floorMs of floorsMs.filter(Number.isFinite).sort((a, b) => a - b)) {
    if (floorMs < oldMs && floorMs >= (startsMs.at(-1) ?? floorMs - afterMs) + afterMs)
      startsMs.push(floorMs);
  }
  for (const [at, startMs] of startsMs.entries()) {
    yield* upTo(Math.min(startMs + afterMs, oldMs));
    yield* upTo(startsMs[at + 1] ?? oldMs);
  }
}

/** What has become due since, by the priority that it counts as. */
function* youngParts(afterMs: number, atMs: number): Generator<Part> {
  // The newest have not aged; and the clock of the database has gone on meanwhile.
  const dueFor = (ages: number) => (ages === 0 ? Number.POSITIVE_INFINITY : atMs - ages * afterMs);
  for (let ages = MAX_PRIORITY - 1; ages >= 0; ages--) yield* upTo(dueFor(ages), ages);
  for (let aged = 1; aged <= MAX_PRIORITY; aged++) {
    for (let priority = MAX_PRIORITY; priority >= aged; priority--)
      yield { priority, ceilingMs: dueFor(priority - aged) };
  }
}

/** The next part of each priority, up to the last of them. */
function* upTo(ceilingMs: number, last = MAX_PRIORITY): Generator<Part> {
  for (let priority = 0; priority <= last; priority++) yield { priority, ceilingMs };
}
