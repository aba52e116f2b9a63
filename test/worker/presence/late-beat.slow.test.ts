import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');

/** Beside so many a worker checks the others every 10 s, and only says that it lives in between. */
const OTHERS = 500;
/** Enqueued one after the other: before the last commits, the worker has heard of the first. */
const JOBS = 20;

/** Whether the worker waits for a lock that it needs to say that it lives. */
async function waitsToBeat(): Promise<boolean> {
  const [row] = await database.client`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%queue_workers%'`;
  return row !== undefined;
}

test('a worker goes on after a beat whose answer came late, but within its deadline', {
  timeout: 120_000,
}, async () => {
  let enqueued = 0;
  let done = 0;
  const enqueue = async () => {
    await queue.enqueue(database.db, work);
    enqueued++;
  };
  const worker = createWorker(database.db, { queue, handlers: [handle(work, () => void done++)] });
  onTestFinished(() => worker.stop());
  const standsStill = () => worker.health().reasons.some((reason) => reason.includes('is suspended'));
  await database.client`
    insert into queue_workers (name, queues, kinds, seen_at)
    select 'other ' || n, '[]', '[]', now() + interval '1 hour' from generate_series(1, ${OTHERS}) as n`;
  await worker.start();
  for (let round = 1; round <= 3; round++) {
    await database.client.begin(async (tx) => {
      await tx`select from queue_workers for update`;
      await until(waitsToBeat, { timeoutMs: 20_000 });
      await until(standsStill);
      for (let job = 1; job <= JOBS; job++) await enqueue();
    });
    await enqueue();
    await until(() => done === enqueued, { timeoutMs: 15_000 });
  }
});
