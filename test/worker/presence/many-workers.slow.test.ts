import { drizzle } from 'drizzle-orm/postgres-js';
import { createWorker, handle } from 'drizzle-queue';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { runningMsUntil } from '../../support/running-time.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { database, queue, sleep, untilSeen, useObservedWorkers, workerRow } from './observed-workers.ts';

useObservedWorkers();

/** Registers workers that have just shown themselves and hold no session, as those behind a pooler. */
async function register(count: number): Promise<void> {
  await database.client`
    insert into queue_workers (name, queues) select 'w', '[]' from generate_series(1, ${count})`;
}

test('one of 300 workers looks at the others every 6 seconds, and still shows itself and finds the dead', async () => {
  await register(300);
  const sent: string[] = [];
  const client = postgres(database.url, { max: 2, debug: (_, text) => sent.push(text) });
  const worker = createWorker(drizzle({ client }), { queue, handlers: [handle(sleep, () => {})] });
  onTestFinished(async () => {
    await worker.stop();
    await client.end();
    await database.client`truncate queue_workers`;
  });
  const started = nextEvent(worker, 'started');
  await worker.start();
  const [{ workerId }] = await started;
  const looks = () =>
    sent.filter((text) => text.includes('with seen as') || text.includes('seen as mat')).length;

  const looked = looks();
  const startMs = performance.now();
  const tookMs = await runningMsUntil(untilSeen(workerId, 4));
  // Four heartbeats, three seconds apart, and so two looks or three, where one of a few workers takes eight.
  expect(tookMs).toBeLessThan(20_000);
  expect(looks() - looked).toBeLessThanOrEqual((performance.now() - startMs) / 4_500 + 1);

  const gone = nextEvent(worker, 'gone');
  const [row] = await database.client<{ id: string }[]>`
    insert into queue_workers (name, queues, session, node)
    select 'dead', '[]', 999999, node from queue_workers where id = ${workerId} returning id`;
  expect(await runningMsUntil(gone)).toBeLessThan(12_000);
  expect((await gone)[0].workerId).toBe(Number(row?.id));
}, 240_000);

test('one of 300 that is declared gone notices it by its next heartbeat', async () => {
  await register(300);
  const client = postgres(database.url, { max: 2 });
  const worker = createWorker(drizzle({ client }), { queue, handlers: [handle(sleep, () => {})] });
  onTestFinished(async () => {
    await worker.stop();
    await client.end();
    await database.client`truncate queue_workers`;
  });
  const started = nextEvent(worker, 'started');
  await worker.start();
  const [{ workerId }] = await started;
  const before = await workerRow(workerId);
  await database.client`delete from queue_workers where id = ${workerId}`;
  await until(async () => (await workerRow(workerId)) !== undefined);
  const after = await workerRow(workerId);
  expect(after?.seen).not.toBe(before?.seen);
  const { id } = await queue.enqueue(database.db, sleep);
  await until(async () => (await queue.find(database.db, id))?.state === 'completed');
}, 240_000);
