import { setTimeout as delay } from 'node:timers/promises';
import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');

/** Among more workers than this each looks less often, and only says that it lives: every 3 s. */
const MANY = 500;
/** A worker claims nothing when nothing has answered for 4 s: so long after the beat that is not answered. */
const CUT_OFF_MS = 1_000;

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
  let done = 0;
  const worker = createWorker(database.db, { queue, handlers: [handle(work, () => void done++)] });
  onTestFinished(() => worker.stop());
  await database.client`
    insert into queue_workers (name, queues, kinds, seen_at)
    select 'other ' || n, '[]', '[]', now() + interval '1 hour' from generate_series(1, ${MANY}) as n`;
  await worker.start();
  for (let round = 1; round <= 3; round++) {
    await database.client.begin(async (tx) => {
      await tx`select from queue_workers for update`;
      await until(waitsToBeat, { timeoutMs: 20_000 });
      await delay(CUT_OFF_MS + 600);
      await queue.enqueue(database.db, work);
      await delay(300);
    });
    await queue.enqueue(database.db, work);
    await until(() => done === 2 * round, { timeoutMs: 15_000 });
  }
});
