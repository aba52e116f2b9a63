import { describe, expect, test } from 'vitest';
import {
  checkBoolean,
  checkDate,
  checkDurationMs,
  checkInteger,
  checkObject,
  checkText,
  MAX_DELAY_MS,
} from '../../src/core/job/limits.ts';

/** For a value that TypeScript would not let through. */
const wrong = <T>(value: unknown): T => value as T;

describe('checkInteger', () => {
  test('answers a whole number within its limits, both included', () => {
    expect([0, 4, 9].map((value) => checkInteger('priority', value, 0, 9))).toEqual([0, 4, 9]);
  });

  test.each([
    [-1, '-1'],
    [10, '10'],
    [4.5, '4.5'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [wrong<number>('5'), "'5'"],
    [wrong<number>(5n), '5'],
    [wrong<number>(null), 'null'],
    [wrong<number>([5]), '5'],
  ])('refuses %s', (value, shown) => {
    const check = () => checkInteger('priority', value, 0, 9);
    expect(check).toThrow(RangeError);
    expect(check).toThrow(`priority must be a whole number from 0 to 9, got ${shown}`);
  });
});

describe('checkDurationMs', () => {
  test('answers whole milliseconds', () => {
    expect(checkDurationMs('delayMs', 0)).toBe(0);
    expect(checkDurationMs('delayMs', 1.4)).toBe(1);
    expect(checkDurationMs('delayMs', 1.6)).toBe(2);
    expect(checkDurationMs('delayMs', MAX_DELAY_MS)).toBe(MAX_DELAY_MS);
    expect(checkDurationMs('timeoutMs', 5, 5, 10)).toBe(5);
  });

  test.each([
    [-1, '-1'],
    [MAX_DELAY_MS + 1, String(MAX_DELAY_MS + 1)],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [wrong<number>('1h'), "'1h'"],
    [wrong<number>(new Date(0)), 'an invalid or out-of-range Date'],
    [wrong<number>(null), 'null'],
  ])('refuses %s', (value, shown) => {
    const check = () => checkDurationMs('delayMs', value);
    expect(check).toThrow(RangeError);
    expect(check).toThrow(`delayMs must be a number of milliseconds from 0 to ${MAX_DELAY_MS}, got ${shown}`);
  });

  test('refuses what is outside the limits that it is given', () => {
    expect(() => checkDurationMs('timeoutMs', 4, 5, 10)).toThrow('from 5 to 10, got 4');
    expect(() => checkDurationMs('timeoutMs', 11, 5, 10)).toThrow('from 5 to 10, got 11');
  });
});

describe('checkDate', () => {
  test('answers a Date of the years 1 to 9999', () => {
    for (const text of ['0001-01-01T00:00:00Z', '1969-12-31T23:59:59.999Z', '9999-12-31T00:00:00Z']) {
      const date = new Date(text);
      expect(checkDate('runAt', date)).toBe(date);
    }
  });

  test.each([
    [new Date(Number.NaN), 'an invalid or out-of-range Date'],
    [new Date('0000-12-31T23:59:59Z'), 'an invalid or out-of-range Date'],
    [new Date('+010000-01-01T00:00:00Z'), 'an invalid or out-of-range Date'],
    [wrong<Date>('2030-01-01'), "'2030-01-01'"],
    [wrong<Date>(0), '0'],
    [wrong<Date>(null), 'null'],
  ])('refuses %s', (value, shown) => {
    const check = () => checkDate('runAt', value);
    expect(check).toThrow(RangeError);
    expect(check).toThrow(`runAt must be a valid Date between the years 1 and 9999, got ${shown}`);
  });
});

describe('checkText', () => {
  test('answers a text within its limit, counted in bytes of UTF-8', () => {
    for (const text of ['a', 'abcd', 'éé', '\u{1f600}']) expect(checkText('queue', text, 4)).toBe(text);
  });

  test.each([
    ['nothing', '', "must be a string that is not empty, got ''"],
    ['no text', wrong<string>(5), 'must be a string that is not empty, got 5'],
    ['undefined', wrong<string>(undefined), 'must be a string that is not empty, got undefined'],
    ['too many bytes', 'abcde', 'must be at most 4 bytes of UTF-8, got 5'],
    ['too many bytes in few characters', 'ééé', 'must be at most 4 bytes of UTF-8, got 6'],
    ['a NUL character', 'a\0', 'must not contain a NUL character'],
    ['half of a surrogate pair', '\ud83d', 'must not contain half of a surrogate pair'],
  ])('refuses %s', (_what, value, message) => {
    const check = () => checkText('queue', value, 4);
    expect(check).toThrow(TypeError);
    expect(check).toThrow(`queue ${message}`);
  });
});

test('checkBoolean answers true or false, and refuses what only looks like it', () => {
  expect([true, false].map((value) => checkBoolean('listen', value))).toEqual([true, false]);
  for (const value of [0, 1, 'false', null, undefined]) {
    expect(() => checkBoolean('listen', wrong(value))).toThrow(/^listen must be true or false, got /);
  }
});

test('checkObject answers an object, and refuses null', () => {
  const options = {};
  expect(checkObject('options', options)).toBe(options);
  for (const value of [null, undefined, 5, 'a']) {
    expect(() => checkObject('options', wrong<object>(value))).toThrow(/^options must be an object, got /);
  }
});
