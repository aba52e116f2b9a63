import { cancel, fail, isCancel, isFail, isSnooze, snooze } from 'drizzle-queue';
import { describe, expect, test } from 'vitest';
import { MAX_DELAY_MS } from '../../src/core/job/limits.ts';

describe('snooze', () => {
  test('is told from every output by its brand', () => {
    expect(isSnooze(snooze(5_000))).toBe(true);
    expect(snooze(5_000).delayMs).toBe(5_000);
    for (const output of [{ delayMs: 5_000 }, cancel('no'), 'snooze', null, undefined]) {
      expect(isSnooze(output)).toBe(false);
    }
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
  test('is told from every output by its brand, and carries its reason', () => {
    expect(isCancel(cancel('order was refunded'))).toBe(true);
    expect(cancel('order was refunded').reason).toBe('order was refunded');
    for (const output of [{ reason: 'order was refunded' }, snooze(1), 'cancel', null, undefined]) {
      expect(isCancel(output)).toBe(false);
    }
  });

  test('makes a text of whatever it is given', () => {
    expect(cancel(42 as never).reason).toBe('42');
    expect(cancel(undefined as never).reason).toBe('undefined');
  });
});

test('fail is told from every output by its brand, and carries its error as it is', () => {
  const error = new Error('no such order');
  expect(isFail(fail(error))).toBe(true);
  expect(fail(error).error).toBe(error);
  expect(isFail(fail(undefined))).toBe(true);
  for (const output of [{ error }, error, cancel('no'), snooze(1), null, undefined]) {
    expect(isFail(output)).toBe(false);
  }
});
