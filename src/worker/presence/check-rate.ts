/** Many workers together look fifty times a second: a look reads the rows of all of them. */
const MS_PER_WORKER = 20;
/** So few look whenever they wake. */
const FEW = 75;
const MAX_MS = 15_000;

/** After how long each of so many workers looks at the others again, at the earliest. */
export function checkEveryMs(workers: number): number {
  return workers <= FEW ? 0 : Math.min(workers * MS_PER_WORKER, MAX_MS);
}
