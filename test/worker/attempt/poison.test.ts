import { once } from 'node:events';
import { createQueue, drain, handle } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { poison } from '../fixtures/poison-job.ts';
import { startWorkerProcess } from '../worker-process.ts';

const database = useTestDatabase();
const queue = createQueue();

test('a job that kills its worker each time is discarded with that reason, after maxAttempts', {
  timeout: 60_000,
}, async () => {
  const { id } = await queue.enqueue(database.db, poison);
  for (const attempt of [1, 2]) {
    const { child } = startWorkerProcess('worker/fixtures/poisoned-worker.ts', {
      DATABASE_URL: database.url,
    });
    const [, signal] = await once(child, 'exit');
    expect(signal).toBe('SIGKILL');
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'running', attempt });
    // As if it had been gone for long enough, so that the next worker need not wait.
    await database.client`delete from queue_workers`;
  }
  let ran = false;
  const drained = await drain(database.db, {
    queue,
    deadlineMs: 30_000,
    handlers: [
      handle(poison, () => {
        ran = true;
      }),
    ],
  });
  expect(drained).toMatchObject({ discarded: 1, completed: 0 });
  expect(ran).toBe(false);
  expect(await queue.find(database.db, id)).toMatchObject({
    state: 'discarded',
    errors: [{ name: 'WorkerLostError', message: expect.stringContaining('was claimed 2 times') }],
  });
});
