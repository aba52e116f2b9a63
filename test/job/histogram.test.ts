import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addBins, binOf, percentileOf } from '../../src/features/metrics/job/histogram.ts';

test('a percentile is within 20 % of the duration that it is about', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 1, max: 1e9, noNaN: true }), { minLength: 1, maxLength: 50 }),
      (all) => {
        const bins = new Map<number, number>();
        for (const ms of all) addBins(bins, { [binOf(ms)]: 1 });
        const sorted = [...all].sort((a, b) => a - b);
        for (const share of [0.5, 0.95, 1]) {
          const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
          const found = percentileOf(bins, share) ?? 0;
          expect(found / exact).toBeGreaterThan(0.8);
          expect(found / exact).toBeLessThan(1.2);
        }
      },
    ),
  );
});

test('what is no duration, or is shorter than a millisecond, is in the first bin, and the longest in the last', () => {
  expect([Number.NaN, -5, 0, 0.5, 1].map(binOf)).toEqual([0, 0, 0, 0, 0]);
  expect([Number.POSITIVE_INFINITY, 1e15].map(binOf)).toEqual([63, 63]);
  expect(percentileOf(new Map(), 0.5)).toBeUndefined();
});
