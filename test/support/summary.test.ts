import { expect, test } from 'vitest';
import { summary } from './summary.ts';

const NOTHING = { passed: 0, failed: 0, skipped: 0 };

test('the last line counts all runs, and names what was skipped only where something was', () => {
  expect(
    summary([
      { ...NOTHING, passed: 3 },
      { ...NOTHING, passed: 4 },
    ]),
  ).toEqual({
    line: '7 passed, 0 failed',
    ok: true,
  });
  expect(
    summary([
      { passed: 3, failed: 1, skipped: 0 },
      { passed: 4, failed: 0, skipped: 2 },
    ]),
  ).toEqual({
    line: '7 passed, 1 failed, 2 skipped',
    ok: false,
  });
});

test('runs of nothing are not good', () => {
  expect(summary([NOTHING])).toEqual({ line: '0 passed, 0 failed', ok: false });
});
