import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import postgres from 'postgres';
import { expect, onTestFinished, test, vi } from 'vitest';
import { OTHERS_NOTIFY, wakeChannel } from '../../../src/core/sql/wake-channel.ts';
import { Sweeper } from '../../../src/core/worker/claim/sweeper.ts';
import { tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const job = defineJob('job', { payload: unvalidated<number>() });

/** How often two workers look of their own accord: each once a second. */
const looksSince = (startMs: number): number => (performance.now() - startMs) / 500;

/** Workers that listen, each by connections of its own; how many claims they have sent, what they have done, and how often they were idle. */
async function listening(count: number, onClaim = () => {}) {
  const seen = { claims: 0, done: [] as number[], idle: 0 };
  for (let n = 0; n < count; n++) {
    const debug = (_: number, text: string) => {
      if (!text.includes('due as (')) return;
      seen.claims++;
      onClaim();
    };
    const client = postgres(database.url, { max: 2, debug });
    const worker = createWorker(drizzle({ client }), {
      queue,
      handlers: [handle(job, ({ payload }) => void seen.done.push(payload))],
    });
    onTestFinished(async () => {
      await worker.stop();
      await client.end();
    });
    const heard = new Promise<void>((resolve) => worker.on('listening', () => resolve()));
    worker.on('idle', () => seen.idle++);
    const idle = new Promise<void>((resolve) => worker.on('idle', () => resolve()));
    await worker.start();
    await Promise.all([heard, idle]);
  }
  return seen;
}

test('workers that are told of each job claim once for each, and not once more after its end', async () => {
  const seen = await listening(2);
  const before = seen.claims;
  const idleBefore = seen.idle;
  const startMs = performance.now();
  for (let n = 0; n < 30; n++) {
    await queue.enqueue(database.db, job, n);
    // The worker that has run it finds that it has left none.
    await until(() => seen.idle - idleBefore > n, { intervalMs: 2 });
  }
  expect(seen.done).toEqual(Array.from({ length: 30 }, (_, n) => n));
  // One of each worker for each job, and now and then one more where something else has made it look.
  expect(seen.claims - before).toBeLessThan(3 * 30 + looksSince(startMs));
});

test('a notification that does not say that others notify makes them look for a while', async () => {
  const seen = await listening(1);
  const before = seen.claims;
  let told = 0;
  // Where a claim takes as long as a tenth of a second, few come of one notification.
  const looks = async () => {
    await database.client.notify(wakeChannel(tables), 'default');
    told++;
    return seen.claims - before >= told + 4;
  };
  await until(looks, { intervalMs: 500 });
});

test('no sweep is sent beside the claim for which a notification has come', async () => {
  const sent: string[] = [];
  const awaken = vi.spyOn(Sweeper.prototype, 'awaken').mockImplementation(() => void sent.push('sweep'));
  onTestFinished(() => awaken.mockRestore());
  const seen = await listening(1, () => sent.push('claim'));
  const before = seen.claims;
  sent.length = 0;
  await database.client.notify(wakeChannel(tables), `${OTHERS_NOTIFY}default`);
  await until(() => sent.includes('sweep'));
  expect(seen.claims).toBeGreaterThan(before);
  expect(sent[0]).toBe('claim');
});

test('a sweep follows the claim for which a notification has come although that fails', async () => {
  const sent: string[] = [];
  const awaken = vi.spyOn(Sweeper.prototype, 'awaken').mockImplementation(() => void sent.push('sweep'));
  onTestFinished(() => awaken.mockRestore());
  await listening(1, () => sent.push('claim'));
  await database.client`alter table queue_jobs rename to jobs_away`;
  try {
    sent.length = 0;
    await database.client.notify(wakeChannel(tables), `${OTHERS_NOTIFY}default`);
    await until(() => sent.includes('sweep'));
    expect(sent[0]).toBe('claim');
  } finally {
    await database.client`alter table jobs_away rename to queue_jobs`;
  }
});

test('of many enqueues at once, none waits for the next poll although few of them notify', async () => {
  const seen = await listening(2);
  await Promise.all(Array.from({ length: 300 }, (_, n) => queue.enqueue(database.db, job, n)));
  await until(() => seen.done.length === 300);
  expect(new Set(seen.done).size).toBe(300);
});
