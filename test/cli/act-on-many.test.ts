import { afterEach, expect, test, vi } from 'vitest';
import { actOnMany } from '../../src/entries/cli/act-on-many.ts';
import { counted } from '../../src/entries/cli/count-jobs.ts';

const { isTTY } = process.stderr;
afterEach(() => {
  process.stderr.isTTY = isTTY;
});

type Context = Parameters<typeof actOnMany>[0];

test.each([true, false])('a count that has found no job in its time: complete %s', async (isComplete) => {
  // With --yes it counts only for a terminal.
  process.stderr.isTTY = true;
  const run = vi.fn(async () => ({ cancelled: 3 }));
  const lines: string[] = [];
  const output = { json: false, line: async (text: string) => void lines.push(text) };
  const code = await actOnMany({ flags: { kind: 'greet', yes: true }, output } as unknown as Context, {
    name: 'cancel',
    count: async () => ({ jobs: 0, isLeast: !isComplete }),
    run,
  });
  expect(code).toBe(0);
  expect(run).toHaveBeenCalledTimes(isComplete ? 0 : 1);
  expect(lines).toEqual([isComplete ? 'No matching jobs.' : '3 cancelled']);
});

test('such a count is not said to be of none', () => {
  expect(counted({ jobs: 0, isLeast: true })).toBe('an unknown number of jobs');
  expect(counted({ jobs: 0, isLeast: false })).toBe('0 jobs');
  expect(counted({ jobs: 1_200, isLeast: true })).toBe('at least 1,200 jobs');
});
