import { createQueue, defineJob, drain, handle, unvalidated } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<number>() });

test('one worker with a concurrency of 1 starts due jobs by priority, run_at, id', async () => {
  const now = Date.now();
  const entries = Array.from({ length: 500 }, (_, n) => ({
    payload: n,
    priority: (n * 7) % 10,
    // Many share a time, so that the id decides among them.
    runAt: new Date(now - 60_000 + ((n * 13) % 20) * 1_000),
  }));
  await queue.enqueueMany(database.db, work, entries);
  const started: number[] = [];
  await drain(database.db, {
    queue,
    queues: { default: { concurrency: 1 } },
    handlers: [handle(work, ({ payload }) => void started.push(payload))],
    deadlineMs: 20_000,
  });
  const inOrder = [...entries]
    .sort((a, b) => a.priority - b.priority || a.runAt.getTime() - b.runAt.getTime() || a.payload - b.payload)
    .map(({ payload }) => payload);
  expect(started).toEqual(inOrder);
});
