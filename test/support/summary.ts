import type { Counts } from './count-reporter.ts';

/** The last line of all runs together, and whether they are good: nothing failed, and something was run. */
export function summary(counts: readonly Counts[]): { readonly line: string; readonly ok: boolean } {
  const sum = (key: keyof Counts) => counts.reduce((total, count) => total + count[key], 0);
  const [passed, failed, skipped] = [sum('passed'), sum('failed'), sum('skipped')];
  const line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  return { line, ok: failed === 0 && passed > 0 };
}
