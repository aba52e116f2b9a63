import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 10 });
const work = defineJob('k', { queue: 'q', payload: unvalidated<unknown>() });

test('400 payloads of a megabyte that compress well are all done under a statement_timeout of 2 s', {
  timeout: 400_000,
}, async () => {
  await database.client.unsafe(`
    insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
    select 'q', 'k', jsonb_build_object('text', repeat('0123456789', 100000)), 20, now() - interval '1 minute'
    from generate_series(1, 400)`);
  await database.client.unsafe(`alter database "${database.name}" set statement_timeout = '2s'`);
  const [limited] = await database.connect(10);
  const worker = createWorker(limited?.db ?? database.db, {
    queue: createQueue({ tables }),
    handlers: [handle(work, () => undefined)],
    queues: { q: { concurrency: 10 } },
  });
  worker.on('error', () => {});
  let completed = 0;
  let heldBytes = 0;
  let mostBytes = 0;
  worker.on('claimed', ({ count }) => {
    heldBytes += count * 1_000_000;
    mostBytes = Math.max(mostBytes, heldBytes);
  });
  worker.on('completed', () => {
    completed++;
    heldBytes -= 1_000_000;
  });
  await worker.start();
  await until(() => completed === 400, { timeoutMs: 300_000 });
  await worker.stop();
  // Ten that run, and what is claimed ahead of them.
  expect(mostBytes).toBeLessThan(40_000_000);
});
