import { createQueue, createWorker, defineJob, drain, handle, unvalidated } from 'drizzle-queue';
import { queueResults } from 'drizzle-queue/schema';
import { describe, expect, onTestFinished, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<number>() });

/** Runs what is due with a concurrency of 1. */
type Run = (run: (n: number) => void, count: number) => Promise<void>;

const byDrain: Run = async (run) => {
  await drain(database.db, {
    queue,
    queues: { default: { concurrency: 1 } },
    handlers: [handle(work, ({ payload }) => run(payload))],
    deadlineMs: 20_000,
  });
};

const byWorker: Run = async (run, count) => {
  const worker = createWorker(database.db, {
    queue,
    queues: { default: { concurrency: 1 } },
    handlers: [handle(work, ({ payload }) => run(payload))],
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  await until(async () => (await database.db.$count(queueResults)) === count);
};

// By either, since a worker claims ahead while it runs, and drain ends when nothing is left.
describe.each([
  ['drain', byDrain],
  ['a worker that runs on', byWorker],
])('%s', (_, runAll) => {
  test('one worker with a concurrency of 1 starts due jobs by priority, run_at, id', async () => {
    await emptyTables(database.client, 'queue_jobs', 'queue_results');
    const now = Date.now();
    const entries = Array.from({ length: 500 }, (_, n) => ({
      payload: n,
      priority: (n * 7) % 10,
      // Many share a time, so that the id decides among them.
      runAt: new Date(now - 60_000 + ((n * 13) % 20) * 1_000),
    }));
    await queue.enqueueMany(database.db, work, entries);
    const started: number[] = [];
    await runAll((n) => void started.push(n), entries.length);
    const inOrder = [...entries]
      .sort(
        (a, b) => a.priority - b.priority || a.runAt.getTime() - b.runAt.getTime() || a.payload - b.payload,
      )
      .map(({ payload }) => payload);
    expect(started).toEqual(inOrder);
  });
});
