import { cancel, snooze } from 'drizzle-queue';
import { describe, expect, test } from 'vitest';
import { MAX_DELAY_MS } from '../../src/job/limits.ts';
import { Cancel, Snooze } from '../../src/job/outcome.ts';

describe('snooze', () => {
  test('is told from every output by its class', () => {
    expect(snooze(5_000)).toBeInstanceOf(Snooze);
    expect(snooze(5_000).delayMs).toBe(5_000);
    expect({ delayMs: 5_000 }).not.toBeInstanceOf(Snooze);
  });

  test('is of whole milliseconds, from none to a century', () => {
    expect(snooze(0).delayMs).toBe(0);
    expect(snooze(1.6).delayMs).toBe(2);
    expect(snooze(MAX_DELAY_MS).delayMs).toBe(MAX_DELAY_MS);
  });

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, MAX_DELAY_MS + 1, '5s' as never, undefined as never])(
    'refuses %s',
    (delayMs) => {
      expect(() => snooze(delayMs)).toThrow(RangeError);
      expect(() => snooze(delayMs)).toThrow(/^snooze: delayMs must be a number of milliseconds/);
    },
  );
});

describe('cancel', () => {
  test('is told from every output by its class, and carries its reason', () => {
    expect(cancel('order was refunded')).toBeInstanceOf(Cancel);
    expect(cancel('order was refunded').reason).toBe('order was refunded');
    expect({ reason: 'order was refunded' }).not.toBeInstanceOf(Cancel);
  });

  test('makes a text of whatever it is given', () => {
    expect(cancel(42 as never).reason).toBe('42');
    expect(cancel(undefined as never).reason).toBe('undefined');
  });
});
