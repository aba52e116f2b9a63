import { type ShardKey, shardOf } from 'drizzle-queue/shards';
import { describe, expect, test } from 'vitest';
import { murmurHash } from '../../src/entries/shards/murmur-hash.ts';

const hashed = (text: string, seed: number) => murmurHash(new TextEncoder().encode(text), seed);
const named = (...names: string[]) => Object.fromEntries(names.map((name) => [name, { db: `db ${name}` }]));

describe('the hash', () => {
  test('is MurmurHash3 (x86, 32 bits) of the text in UTF-8', () => {
    // Vectors of other implementations: the empty text, with each length of the rest, and with a seed.
    expect(hashed('', 0)).toBe(0);
    expect(hashed('', 1)).toBe(0x514e28b7);
    expect(hashed('', 0xffffffff)).toBe(0x81f16f39);
    expect(hashed('test', 0)).toBe(0xba6bd213);
    expect(hashed('test', 0x9747b28c)).toBe(0x704b81dc);
    expect(hashed('Hello, world!', 0)).toBe(0xc0363e43);
    expect(hashed('Hello, world!', 0x9747b28c)).toBe(0x24884cba);
    expect(hashed('The quick brown fox jumps over the lazy dog', 0)).toBe(0x2e4ff723);
    expect(hashed('The quick brown fox jumps over the lazy dog', 0x9747b28c)).toBe(0x2fa826cd);
    for (const [text, hash] of [
      ['a', 0x7fa09ea6],
      ['aa', 0x5d211726],
      ['aaa', 0x283e0130],
      ['aaaa', 0x5a97808a],
    ] as const) {
      expect(hashed(text, 0x9747b28c)).toBe(hash);
    }
    expect(hashed('ππππππππ', 0x9747b28c)).toBe(0xd58063c1);
  });
});

describe('shardOf', () => {
  const four = named('a', 'b', 'c', 'd');
  const keys = Array.from({ length: 10_000 }, (_, n) => n);

  test('gives the shard and its name', () => {
    const { name, db } = shardOf(four, 'acme');
    expect(db).toBe(`db ${name}`);
  });

  test('is the same for ever: apps have stored by it where their jobs are', () => {
    const chosen = [1, 2, 3, 4, 5, 'acme', 'münchen'].map((key) => [key, shardOf(four, key).name]);
    const stored = { 1: 'd', 2: 'a', 3: 'c', 4: 'd', 5: 'b', acme: 'c', münchen: 'c' };
    expect(Object.fromEntries(chosen)).toEqual(stored);
  });

  test('does not depend on the order of the shards, nor on the type of the key', () => {
    const reversed = named('d', 'c', 'b', 'a');
    for (const key of keys.slice(0, 1_000)) {
      const { name } = shardOf(four, key);
      expect(shardOf(reversed, key).name).toBe(name);
      expect(shardOf(four, String(key)).name).toBe(name);
      expect(shardOf(four, BigInt(key)).name).toBe(name);
    }
  });

  test.each([
    ['letters', named('a', 'b', 'c', 'd')],
    [
      'numbers',
      named('shard-0', 'shard-1', 'shard-2', 'shard-3', 'shard-4', 'shard-5', 'shard-6', 'shard-7'),
    ],
    ['regions', named('eu', 'us', 'asia')],
  ])('spreads keys evenly over shards named by %s', (_, shards) => {
    for (const key of [(n: number) => n, (n: number) => `tenant-${n}`, (n: number) => n * 1_000_000]) {
      const count = new Map(Object.keys(shards).map((name) => [name, 0]));
      for (const n of keys) {
        const { name } = shardOf(shards, key(n));
        count.set(name, (count.get(name) ?? 0) + 1);
      }
      const fair = keys.length / count.size;
      // Five standard deviations of a fair choice.
      const bound = 5 * Math.sqrt(fair);
      for (const of of count.values()) expect(Math.abs(of - fair)).toBeLessThan(bound);
    }
  });

  test('a new shard takes its share from each other, and no key moves between those', () => {
    const five = named('a', 'b', 'c', 'd', 'e');
    const taken = new Map<string, number>();
    for (const key of keys) {
      const [before, after] = [shardOf(four, key).name, shardOf(five, key).name];
      if (after === before) continue;
      expect(after).toBe('e');
      taken.set(before, (taken.get(before) ?? 0) + 1);
    }
    expect([...taken.keys()].sort()).toEqual(['a', 'b', 'c', 'd']);
    // A twentieth of all keys from each.
    for (const count of taken.values()) expect(Math.abs(count - 500)).toBeLessThan(5 * Math.sqrt(500));
  });

  test('refuses what is no key, so that a forgotten one does not choose a shard', () => {
    for (const key of [undefined, null, '', Number.NaN, 1.5, 2 ** 53, {}, true]) {
      expect(() => shardOf(four, key as ShardKey)).toThrow(TypeError);
    }
    expect(() => shardOf(four, undefined as unknown as ShardKey)).toThrow(
      'shardOf: key must be a text that is not empty, a safe whole number or a bigint, got undefined',
    );
  });

  test('refuses no shards, and names that cannot be part of a URL', () => {
    expect(() => shardOf({}, 1)).toThrow('shardOf: shards must have at least one shard');
    expect(() => shardOf(named('a', 'b/c'), 1)).toThrow("1 to 64 letters, digits, _ and -, got 'b/c'");
    expect(() => shardOf(undefined as never, 1)).toThrow(TypeError);
  });
});
