import { exponentialBackoff, fixedBackoff } from 'drizzle-queue';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ExponentialBackoffOptions } from '../../src/core/job/backoff.ts';

/** The greatest number that a source of jitter may answer. */
const ALMOST_ONE = 1 - Number.EPSILON / 2;

const error = new Error('anything');

/** Waits after attempts 1, 2, … when the jitter is always `random`. */
function waits(count: number, random: number, options: ExponentialBackoffOptions = {}): number[] {
  const backoff = exponentialBackoff({ ...options, random: () => random });
  return Array.from({ length: count }, (_, index) => backoff(index + 1, error));
}

describe('exponentialBackoff', () => {
  test('doubles from a second to an hour, unless told otherwise', () => {
    expect(waits(4, ALMOST_ONE)).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(waits(14, ALMOST_ONE).at(-2)).toBe(3_600_000);
    expect(waits(14, ALMOST_ONE).at(-1)).toBe(3_600_000);
  });

  test('takes the first wait, the factor and the cap from its settings', () => {
    expect(waits(5, ALMOST_ONE, { initialMs: 10, factor: 3, maxMs: 200 })).toEqual([10, 30, 90, 200, 200]);
    expect(waits(3, ALMOST_ONE, { initialMs: 10, factor: 1 })).toEqual([10, 10, 10]);
  });

  test('draws the wait evenly from zero to its bound', () => {
    expect(waits(3, 0)).toEqual([0, 0, 0]);
    expect(waits(3, 0.5)).toEqual([500, 1_000, 2_000]);
    expect(waits(3, 0.25)).toEqual([250, 500, 1_000]);
  });

  test('reaches near zero and near the cap with its own source of jitter', () => {
    const backoff = exponentialBackoff({ initialMs: 1_000_000, maxMs: 1_000_000 });
    const drawn = Array.from({ length: 2_000 }, () => backoff(1, error)).sort((a, b) => a - b);
    // That all of them miss a twentieth of the interval has a probability below 10^-44.
    expect(drawn[0]).toBeLessThan(50_000);
    expect(drawn.at(-1)).toBeGreaterThan(950_000);
    expect(drawn[1_000]).toBeGreaterThan(400_000);
    expect(drawn[1_000]).toBeLessThan(600_000);
  });

  const settings = fc
    .record({
      initialMs: fc.double({ min: Number.MIN_VALUE, max: 1e12, noNaN: true }),
      over: fc.double({ min: 0, max: 1e12, noNaN: true }),
      factor: fc.double({ min: 1, max: 1e6, noNaN: true }),
    })
    .map(({ initialMs, over, factor }) => ({ initialMs, factor, maxMs: initialMs + over }));
  const attempts = fc.integer({ min: 1, max: 10_000 });
  const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  test('answers whole milliseconds from 0 to the bound of the attempt and to the cap, whatever the settings', () => {
    fc.assert(
      fc.property(settings, attempts, jitter, (options, attempt, random) => {
        const wait = exponentialBackoff({ ...options, random: () => random })(attempt, error);
        expect(Number.isInteger(wait)).toBe(true);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(Math.round(options.maxMs));
        expect(wait).toBeLessThanOrEqual(Math.round(options.initialMs * options.factor ** (attempt - 1)));
      }),
      { numRuns: 1_000 },
    );
  });

  test('never waits less after a later attempt, for the same jitter', () => {
    fc.assert(
      fc.property(settings, attempts, attempts, jitter, (options, one, other, random) => {
        const backoff = exponentialBackoff({ ...options, random: () => random });
        const [earlier, later] = [Math.min(one, other), Math.max(one, other)];
        expect(backoff(earlier, error)).toBeLessThanOrEqual(backoff(later, error));
      }),
    );
  });

  test.each([
    [{ initialMs: 0 }, 'initialMs', '0'],
    [{ initialMs: -5 }, 'initialMs', '-5'],
    [{ initialMs: Number.NaN }, 'initialMs', 'NaN'],
    [{ initialMs: Number.POSITIVE_INFINITY }, 'initialMs', 'Infinity'],
    [{ initialMs: '1s' }, 'initialMs', "'1s'"],
    [{ initialMs: null }, 'initialMs', 'null'],
    [{ initialMs: 10n }, 'initialMs', '10'],
    [{ initialMs: 10, maxMs: 9 }, 'maxMs', '9'],
    [{ maxMs: Number.POSITIVE_INFINITY }, 'maxMs', 'Infinity'],
    [{ maxMs: Number.NaN }, 'maxMs', 'NaN'],
    [{ maxMs: '5000' }, 'maxMs', "'5000'"],
    [{ factor: 0.99 }, 'factor', '0.99'],
    [{ factor: -2 }, 'factor', '-2'],
    [{ factor: Number.NaN }, 'factor', 'NaN'],
    [{ factor: Number.POSITIVE_INFINITY }, 'factor', 'Infinity'],
    [{ factor: '2' }, 'factor', "'2'"],
  ])('refuses %o and says which setting and value', (options, setting, value) => {
    const make = () => exponentialBackoff(options as ExponentialBackoffOptions);
    expect(make).toThrow(RangeError);
    expect(make).toThrow(new RegExp(`^exponentialBackoff: ${setting} must be .*, got ${value}$`));
  });
});

describe('fixedBackoff', () => {
  test('may be no wait at all', () => {
    expect(fixedBackoff(0)(1, error)).toBe(0);
  });

  test('is the same wait after every attempt', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e12, noNaN: true }),
        fc.integer({ min: 1, max: 10_000 }),
        (delayMs, attempt) => {
          expect(fixedBackoff(delayMs)(attempt, error)).toBe(delayMs);
        },
      ),
    );
  });

  test.each([
    [-1, '-1'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    ['5', "'5'"],
    [undefined, 'undefined'],
  ])('refuses %s and says so', (delayMs, value) => {
    const make = () => fixedBackoff(delayMs as number);
    expect(make).toThrow(RangeError);
    expect(make).toThrow(`fixedBackoff: delayMs must be a number of at least 0, got ${value}`);
  });
});
