/** How many durations there are of each size: see {@link binOf}. */
export type Bins = Readonly<Record<string, number>>;

/** About 34 days; whatever takes longer counts as that. */
const LAST_BIN = 63;

/** The bin of a duration: `b` for those from `√2 ** b` milliseconds on, 0 for all that are shorter. */
export function binOf(ms: number): number {
  // `!(ms > 1)` is true for NaN as well.
  if (!(ms > 1)) return 0;
  return Math.min(LAST_BIN, Math.floor(2 * Math.log2(ms)));
}

export function addBins(sum: Map<number, number>, bins: Bins): void {
  for (const [bin, count] of Object.entries(bins)) {
    sum.set(Number(bin), (sum.get(Number(bin)) ?? 0) + Number(count));
  }
}

/**
 * The duration that a share of all are no longer than, in milliseconds: the middle of its bin, so within 20 %
 * of the true one from 1 ms on. `undefined` for an empty histogram.
 *
 * @param share above 0, up to 1
 */
export function percentileOf(bins: ReadonlyMap<number, number>, share: number): number | undefined {
  const sorted = [...bins].sort(([a], [b]) => a - b);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  let left = total * share;
  for (const [bin, count] of sorted) {
    left -= count;
    // Sums of fractions may be a hair above what they should be.
    if (count > 0 && left <= 1e-9) return Math.SQRT2 ** (bin + 0.5);
  }
  return undefined;
}
