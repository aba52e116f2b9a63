import { setTimeout as sleep } from 'node:timers/promises';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import postgres from 'postgres';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { clearGroups } from '../queries/support/groups.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();
const queue = createQueue({ limits: limitsIn(control, { fair: { groups: 'fair' } }) });
const job = defineJob('job', { payload: unvalidated<number>(), queue: 'fair' });

beforeAll(() => addControlTables(database));
beforeEach(() => clearGroups(database.client));

/** How often two workers look of their own accord: each once a second. */
const looksSince = (startMs: number): number => (performance.now() - startMs) / 500;

/** Workers that listen, each by connections of its own; how many claims they have sent, what they have done, and how often they were idle. */
async function listening(
  count: number,
  options: { readonly pollIntervalMs?: number } = {},
  work: (payload: number) => unknown = () => undefined,
) {
  const seen = { claims: 0, done: [] as number[], idle: 0 };
  for (let n = 0; n < count; n++) {
    const debug = (_: number, text: string) => {
      if (text.includes('turning as')) seen.claims++;
    };
    const client = postgres(database.url, { max: 2, debug });
    const worker = createWorker(drizzle({ client }), {
      queue,
      handlers: [
        handle(job, async ({ payload }) => {
          await work(payload);
          seen.done.push(payload);
        }),
      ],
      ...options,
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

test('where groups only take turns, workers that are told of each job claim once for each', async () => {
  const seen = await listening(2);
  const before = seen.claims;
  const idleBefore = seen.idle;
  const startMs = performance.now();
  for (let n = 0; n < 30; n++) {
    await queue.enqueue(database.db, job, n, { group: String(n % 3) });
    // The worker that has run it finds that it has left none.
    await until(() => seen.idle - idleBefore > n, { intervalMs: 2 });
  }
  expect(seen.done).toEqual(Array.from({ length: 30 }, (_, n) => n));
  // One of each worker for each job, and one or two more where both have met.
  expect(seen.claims - before).toBeLessThan(4 * 30 + looksSince(startMs));
});

test('a job that waits for another of its group, by a limit that was set at run time, waits for no look', async () => {
  await queue.limits.set(database.db, { queue: 'fair', group: '*' }, { concurrency: 1 });
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  // Others end when the worker no longer looks again and again, and when the end of a job is known to leave a note.
  const work = (payload: number) => (payload < 0 ? ended : sleep(700));
  // No look in the time of a test, nor one after the end of the last job.
  const seen = await listening(1, { pollIntervalMs: 60_000 }, work);
  await queue.enqueue(database.db, job, -1, { group: 'long' });
  const entries = Array.from({ length: 3 }, (_, payload) => ({ payload, group: 'one' }));
  await queue.enqueueMany(database.db, job, entries);
  await until(() => seen.done.length === 3, { timeoutMs: 40_000 });
  expect(seen.done).toEqual([0, 1, 2]);
  end();
});
