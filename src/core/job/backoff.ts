import { checkOptions, namesOf } from './known-options.ts';
import { shown } from './shown.ts';

/**
 * How long to wait before the next attempt, in milliseconds, at least 0. More than a year counts as a year,
 * and the process warns of it once for each kind. A backoff that throws, or returns something else than such
 * a number (a promise, say), is replaced by the default.
 *
 * @param attempt the attempt that has just failed, counted from 1
 * @param error what the handler threw
 */
export type Backoff = (attempt: number, error: unknown) => number;

/** The options of {@link exponentialBackoff}. */
export interface ExponentialBackoffOptions {
  /** The longest wait after the first failed attempt, in milliseconds, above 0. @default 1_000 */
  initialMs?: number | undefined;
  /** The longest wait, in milliseconds, at least `initialMs`. @default 3_600_000 (one hour) */
  maxMs?: number | undefined;
  /** What each further attempt multiplies the wait by, at least 1. @default 2 */
  factor?: number | undefined;
  /** Where the jitter comes from: a number in [0, 1). @default Math.random */
  random?: (() => number) | undefined;
}

const OPTIONS = namesOf<ExponentialBackoffOptions>({
  initialMs: true,
  maxMs: true,
  factor: true,
  random: true,
});

/**
 * Waits that grow with each attempt, with full jitter: each is drawn evenly from 0 to `initialMs ·
 * factor^(attempt - 1)`, capped at `maxMs`. So jobs that failed together do not come back together. After
 * Marc Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
 *
 * @throws RangeError | TypeError when a setting is outside its range
 */
export function exponentialBackoff(options: ExponentialBackoffOptions = {}): Backoff {
  checkOptions('exponentialBackoff: options', options, OPTIONS);
  const { initialMs = 1_000, maxMs = 3_600_000, factor = 2, random = Math.random } = options;
  // `Number.isFinite` first: comparing a value that is not a number might throw.
  if (!(Number.isFinite(initialMs) && initialMs > 0)) {
    throw new RangeError(`exponentialBackoff: initialMs must be a number above 0, got ${shown(initialMs)}`);
  }
  if (!(Number.isFinite(maxMs) && maxMs >= initialMs)) {
    throw new RangeError(
      `exponentialBackoff: maxMs must be a number of at least initialMs, got ${shown(maxMs)}`,
    );
  }
  if (!(Number.isFinite(factor) && factor >= 1)) {
    throw new RangeError(`exponentialBackoff: factor must be a number of at least 1, got ${shown(factor)}`);
  }
  if (typeof random !== 'function') {
    throw new TypeError(`exponentialBackoff: random must be a function, got ${shown(random)}`);
  }
  // The power overflows to Infinity for late attempts; the cap turns that into maxMs.
  return (attempt) => Math.round(random() * Math.min(maxMs, initialMs * factor ** (attempt - 1)));
}

/** The same wait after every attempt, in milliseconds. @throws RangeError unless it is at least 0 */
export function fixedBackoff(delayMs: number): Backoff {
  if (!(Number.isFinite(delayMs) && delayMs >= 0)) {
    throw new RangeError(`fixedBackoff: delayMs must be a number of at least 0, got ${shown(delayMs)}`);
  }
  return () => delayMs;
}
