import { expect, test } from 'vitest';
import { shown } from '../../src/core/job/shown.ts';

const throwing = () => {
  throw new Error('in its turn');
};

test.each<[unknown, string]>([
  ['a text', "'a text'"],
  ['', "''"],
  [5, '5'],
  [undefined, 'undefined'],
  [null, 'null'],
  [10n, '10'],
  [Symbol('s'), 'Symbol(s)'],
  [new Date(Number.NaN), 'an invalid or out-of-range Date'],
  [{}, '[object Object]'],
  [{ toString: throwing }, 'a value of type object'],
  [{ [Symbol.toPrimitive]: throwing }, 'a value of type object'],
  [Object.create(null), 'a value of type object'],
])('%o is shown as %s', (value, text) => {
  expect(shown(value)).toBe(text);
});

test('what is long is cut', () => {
  expect(shown('x'.repeat(1_000_000))).toBe(`'${'x'.repeat(60)}…'`);
  expect(shown(new Array(1_000).fill('y'))).toHaveLength(61);
});
