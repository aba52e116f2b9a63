import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const job = defineJob('job');

test('a worker that polls every two seconds looks for overlooked jobs no more often, and finds them', async () => {
  const sent: { readonly text: string; readonly atMs: number }[] = [];
  const debug = (_: number, text: string) => void sent.push({ text, atMs: performance.now() });
  const client = postgres(database.url, { max: 2, debug });
  const worker = createWorker(drizzle({ client }), {
    queue,
    listen: false,
    pollIntervalMs: 2_000,
    handlers: [handle(job, () => {})],
  });
  onTestFinished(async () => {
    await worker.stop();
    await client.end();
  });
  await worker.start();
  const sweeps = () => sent.filter(({ text }) => text.includes('overlooked'));
  await until(() => sweeps().length >= 4);
  const times = sweeps().map(({ atMs }) => atMs);
  // With a quarter of jitter; twelve and more without.
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(3 * 2_000 * 0.7);

  // Enqueued and done, so that claims begin behind it; the next one bears an older time.
  const done = async (id: number) => (await queue.find(database.db, id))?.state === 'completed';
  const { id: first } = await queue.enqueue(database.db, job);
  await until(() => done(first));
  const { id: old } = await queue.enqueue(database.db, job, undefined, {
    runAt: new Date(Date.now() - 3_600_000),
  });
  await until(() => done(old));
});
