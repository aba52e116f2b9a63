import { expect, test } from 'vitest';
import { Starts } from '../../src/features/limits/worker/starts.ts';

const rate = { limit: 10, perMs: 1_000 };

test('a batch may begin until its starts are void; at no time, if they became void before it spent them', () => {
  const starts = new Starts({ queue: 'q', kind: '', declared: rate });
  const take = () => {
    const wish = starts.wish(0, { all: 2, first: 2 });
    if (wish === undefined) throw new TypeError('It asks for none');
    starts.noteSent(wish, 0);
    starts.noteAnswer({ rate, granted: wish.want, part: '1', left: 8, freeInMs: 1_000, freeThen: 10 }, 1);
    return wish.withinMs;
  };
  const voidMs = take();
  expect([starts.available(1), starts.spend(2, 1)]).toEqual([2, voidMs]);
  expect(take()).toBe(voidMs);
  expect(starts.available(voidMs - 1)).toBe(2);
  expect(starts.spend(2, voidMs)).toBe(voidMs);
});
