import { expect, test } from 'vitest';
import { Doubling } from '../../src/core/time/doubling.ts';

test('each wait is twice as long as the one before, up to the most', () => {
  const delays = new Doubling(100, 500);
  expect(delays.isFirst).toBe(true);
  expect(Array.from({ length: 5 }, () => delays.next())).toEqual([100, 200, 400, 500, 500]);
  expect(delays.isFirst).toBe(false);
});

test('after a reset the first wait comes again', () => {
  const delays = new Doubling();
  delays.next();
  delays.next();
  delays.reset();
  expect(delays.isFirst).toBe(true);
  expect(delays.next()).toBe(100);
});

test('it stays at the most, however many times it is asked', () => {
  const delays = new Doubling();
  for (let times = 0; times < 5_000; times++) delays.next();
  expect(delays.next()).toBe(5_000);
});
