import { expect, test } from 'vitest';
import { minutes, summary } from './summary.ts';

const NOTHING = { passed: 0, failed: 0, skipped: 0 };

test('the last line counts all runs, and names what was skipped only where something was', () => {
  expect(
    summary(
      [
        { ...NOTHING, passed: 3 },
        { ...NOTHING, passed: 4 },
      ],
      185_000,
    ),
  ).toEqual({
    line: '7 passed, 0 failed in 3:05',
    ok: true,
  });
  expect(
    summary(
      [
        { passed: 3, failed: 1, skipped: 0, again: 'npm run lint' },
        { passed: 4, failed: 2, skipped: 2, again: 'npx vitest run test/a.test.ts test/b.test.ts' },
      ],
      59_400,
    ),
  ).toEqual({
    line:
      '7 passed, 3 failed, 2 skipped in 0:59. ' +
      'Repeat what failed: npm run lint; npx vitest run test/a.test.ts test/b.test.ts',
    ok: false,
  });
});

test('runs of nothing are not good', () => {
  expect(summary([NOTHING], 0)).toEqual({ line: '0 passed, 0 failed in 0:00', ok: false });
});

test('a duration is rounded to seconds before they become minutes', () => {
  expect(minutes(59_600)).toBe('1:00');
  expect(minutes(3_601_000)).toBe('60:01');
});
