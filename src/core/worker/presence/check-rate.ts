/** Many workers together look about fifty times a second: a look reads the rows of all of them. */
const MS_PER_WORKER = 20;
/** This few look whenever they wake. */
const FEW = 50;
const MAX_MS = 15_000;

/** The least time between two looks of each worker at the others, by the number of workers. */
export function checkEveryMs(workers: number): number {
  return workers <= FEW ? 0 : Math.min(workers * MS_PER_WORKER, MAX_MS);
}
