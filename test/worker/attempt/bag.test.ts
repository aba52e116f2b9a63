import { expect, test } from 'vitest';
import { Bag } from '../../../src/core/worker/base/bag.ts';

const things = (count: number) => Array.from({ length: count }, () => ({ place: -1, other: -1 }));
type Thing = ReturnType<typeof things>[number];
const newBag = () => new Bag<'place', Thing>('place');

test('has what was added and not deleted, in whatever order that happens', () => {
  const all = things(100);
  const bag = newBag();
  for (const thing of all) bag.add(thing);
  const kept = new Set(all);
  // Neither in order nor in reverse: 37 has no factor in common with 100.
  for (let n = 0; n < 60; n++) {
    const thing = all[(n * 37) % 100];
    if (thing === undefined) throw new Error('no thing');
    bag.delete(thing);
    kept.delete(thing);
    expect(bag.size).toBe(kept.size);
    expect(new Set(bag)).toEqual(kept);
    expect(all.every((other) => bag.has(other) === kept.has(other))).toBe(true);
  }
});

test('takes one back that was in it, and adds or deletes none twice', () => {
  const bag = newBag();
  const [one, two] = things(2);
  if (one === undefined || two === undefined) throw new Error('no things');
  bag.add(one);
  bag.add(two);
  bag.add(two);
  bag.delete(one);
  bag.delete(one);
  expect([...bag]).toEqual([two]);
  bag.add(one);
  expect(new Set(bag)).toEqual(new Set([one, two]));
});

test('does not know what is in another, and the same may be in both', () => {
  const bag = newBag();
  const other = new Bag<'other', Thing>('other');
  const [one, two] = things(2);
  if (one === undefined || two === undefined) throw new Error('no things');
  bag.add(one);
  other.add(two);
  other.add(one);
  bag.delete(two);
  expect([bag.has(one), bag.has(two), bag.size]).toEqual([true, false, 1]);
  bag.delete(one);
  expect([bag.size, other.size, other.has(one)]).toEqual([0, 2, true]);
});

test('lets what it names change while it names it', () => {
  const bag = newBag();
  const all = things(5);
  for (const thing of all) bag.add(thing);
  let named = 0;
  for (const thing of bag) {
    named++;
    bag.delete(thing);
  }
  expect([named, bag.size]).toEqual([5, 0]);
});
