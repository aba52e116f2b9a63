import { expect, test } from 'vitest';
import { registerWorker } from '../../../src/core/queries/presence/register-worker.ts';
import { Deadlines } from '../../../src/core/time/deadlines.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { checkEveryMs } from '../../../src/core/worker/presence/check-rate.ts';
import { Liveness } from '../../../src/core/worker/presence/liveness.ts';
import { tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';

const database = useTestDatabase();

test('a worker with jobs looks at the others within a second, one without after 1.5 seconds', async () => {
  const { db } = database;
  const worker = { name: 'w', queues: ['default'], kinds: ['work'] };
  const workerId = await registerWorker(db, tables, worker);
  let jobs = 0;
  const liveness = new Liveness({
    db,
    tables,
    workerId,
    ...worker,
    silentMs: 30_000,
    frozenMs: 60_000,
    reconnectMs: 2_500,
    events: new WorkerEmitter(),
    deadlines: new Deadlines(),
    hasJobs: () => jobs > 0,
    onSilence: () => {},
    onDeclaredGone: async () => {},
    onOthersGone: () => {},
    onOtherServer: () => undefined,
    onReturn: () => {},
  });
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
