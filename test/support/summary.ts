import type { Progress } from './progress-reporter.ts';

/** How a run ended, and the command that repeats what failed in it. */
export interface Ended extends Pick<Progress, 'passed' | 'failed' | 'skipped'> {
  /** Undefined if nothing failed. */
  readonly again?: string | undefined;
}

/** The last line about all runs together, and whether they are good: nothing failed, and something was run. */
export function summary(
  runs: readonly Ended[],
  elapsedMs: number,
): { readonly line: string; readonly ok: boolean } {
  const sum = (key: 'passed' | 'failed' | 'skipped') => runs.reduce((total, run) => total + run[key], 0);
  const [passed, failed, skipped] = [sum('passed'), sum('failed'), sum('skipped')];
  const counts = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  const again = runs.flatMap((run) => run.again ?? []);
  const next = again.length > 0 ? `. Repeat what failed: ${again.join('; ')}` : '';
  return { line: `${counts} in ${minutes(elapsedMs)}${next}`, ok: failed === 0 && passed > 0 };
}

/** A duration as minutes and seconds: `3:05`. */
export function minutes(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
