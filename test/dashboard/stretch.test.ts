import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BATCH, doStretch } from '../../src/entries/dashboard/stretch.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const ids = Array.from({ length: BATCH }, (_, n) => n + 1);
const before = { tried: 0, done: 0, after: 0 };

/** One is done before the time of the request is over, behind the job 40. */
async function endedBehind40(find: (after: number) => Promise<readonly number[] | undefined>) {
  return await doStretch(before, {
    find: async (after) => (after === 0 ? ids : await find(after)),
    act: async (_, { note, mayGoOn }) => {
      note(1);
      vi.advanceTimersByTime(60_000);
      expect(mayGoOn(40)).toBe(false);
    },
  });
}

test.each([
  ['is too slow', async () => undefined],
  ['fails', () => Promise.reject(new Error('too many connections'))],
])('names only jobs that were tried, also where the look behind the last of them %s', async (_, find) => {
  expect(await endedBehind40(find)).toEqual({
    ...{ tried: 40, done: 1, after: 40, end: 'more' },
    ids: ids.slice(0, 40),
  });
});

test.each([
  ['only jobs that were done', async () => ids.filter((id) => id > 7), ids.slice(0, 7)],
  ['each that may have been done, where the look behind it is too slow', async () => undefined, ids],
  [
    'each that may have been done, where the look behind it fails',
    () => Promise.reject(new Error('down')),
    ids,
  ],
])('where it fails in the middle of a batch, it names %s', async (_, look, named) => {
  let looks = 0;
  const stretch = await doStretch(before, {
    find: async () => (looks++ === 0 ? ids : await look()),
    act: async (_, { note }) => {
      note(7);
      throw new Error('connection lost');
    },
  });
  expect(stretch).toEqual({ tried: 7, done: 7, after: 0, end: 'more', ids: named });
});

test('names jobs behind the last one that were done with it, by what that look has found', async () => {
  const rest = ids.filter((id) => id > 40 && id % 2 === 0);
  const stretch = await endedBehind40(async () => rest);
  expect(stretch).toMatchObject({ tried: ids.length - rest.length, done: 1, after: 40 });
  expect(stretch.ids).toEqual(ids.filter((id) => !rest.includes(id)));
});
