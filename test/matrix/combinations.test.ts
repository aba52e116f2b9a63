import { expect, test } from 'vitest';
import { axes, exists, fullProduct, pairsOf, pairwise } from './combinations.ts';

const all = fullProduct();

test('the pairwise choice covers every pair of values that can meet, in far fewer combinations', () => {
  const chosen = pairwise(all);
  expect(new Set(chosen.flatMap(pairsOf))).toEqual(new Set(all.flatMap(pairsOf)));
  expect(chosen.every(exists)).toBe(true);
  expect(chosen.length).toBeLessThan(all.length / 3);
  expect(pairwise(all)).toEqual(chosen);
});

test('every value of every axis occurs, and none of what does not exist', () => {
  for (const [axis, values] of Object.entries(axes)) {
    const seen = new Set(all.map((combination) => Reflect.get(combination, axis)));
    expect([...seen].sort()).toEqual([...values].sort());
  }
  const pairs = new Set(all.flatMap(pairsOf));
  expect(pairs).not.toContain('driver Bun SQL × runtime Node 20');
  expect(pairs).not.toContain('driver PGlite × postgres 18');
  expect(pairs).toContain('driver Bun SQL × postgres 18');
});
