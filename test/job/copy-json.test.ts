import { expect, test } from 'vitest';
import { copyJson } from '../../src/core/job/copy-json.ts';

test.each([
  ['null', null],
  ['a text', 'x'],
  ['a number', 7],
  ['an empty object', {}],
  ['an array of arrays', [[], [1, [2, { a: null }]]]],
  ['an object of objects', { a: { b: [{ c: true }] }, d: 'x' }],
])('%s is copied as it is', (_, value) => {
  expect(copyJson(value)).toEqual(value);
});

test('no object of the copy is one of the original', () => {
  const original = { a: { b: [{ c: 1 }] } };
  const copy = copyJson(original);
  copy.a.b.push({ c: 2 });
  for (const one of copy.a.b) one.c = 0;
  expect(original).toEqual({ a: { b: [{ c: 1 }] } });
});

test('a key named __proto__ stays a key', () => {
  const copy = copyJson(JSON.parse('{"__proto__": {"admin": true}, "a": {"__proto__": 1}}'));
  expect(Object.keys(copy)).toEqual(['__proto__', 'a']);
  expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
  expect(JSON.stringify(copy)).toBe('{"__proto__":{"admin":true},"a":{"__proto__":1}}');
});

test('it may be as deep as Postgres takes it', () => {
  let deep: unknown[] = [];
  for (let depth = 0; depth < 100_000; depth++) deep = [deep];
  let copy = copyJson(deep);
  let depth = 0;
  while (Array.isArray(copy[0])) {
    copy = copy[0];
    depth++;
  }
  expect(depth).toBe(100_000);
});

test('what is no JSON is not copied', () => {
  const date = new Date();
  const values = { date, map: new Map(), own: new (class Own {})() };
  const copy = copyJson(values);
  expect(copy).not.toBe(values);
  expect(copy.date).toBe(date);
  expect(copy.map).toBe(values.map);
  expect(copy.own).toBe(values.own);
});
