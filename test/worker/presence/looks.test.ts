import { expect, test } from 'vitest';
import { checkEveryMs } from '../../../src/core/worker/presence/check-rate.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { registered } from './registered.ts';

const database = useTestDatabase();

test('a worker with jobs looks at the others within a second, one without after 1.5 seconds', async () => {
  let jobs = 0;
  const { liveness } = await registered(database, { hasJobs: () => jobs > 0 });
  expect(await liveness.look()).toBe(1_500);
  jobs = 1;
  const pauses: number[] = [];
  while (pauses.length < 10) pauses.push(await liveness.look());
  expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(750);
  // Not all at the same distance, or workers that look together would go on to.
  expect(new Set(pauses).size).toBeGreaterThan(1);
  jobs = 0;
  expect(await liveness.look()).toBe(1_500);
});

test.each([1, 50, 51, 75, 300, 700])(
  '%i workers that look at most once a second do so fifty times together',
  (workers) => {
    const everyMs = Math.max(checkEveryMs(workers), 1_000);
    expect((workers * 1_000) / everyMs).toBeLessThanOrEqual(50);
  },
);
