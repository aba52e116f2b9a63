import { setTimeout as sleep } from 'node:timers/promises';
import type { PGlite } from '@electric-sql/pglite';
import { drizzle } from 'drizzle-orm/pglite';
import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openPglite } from '../support/pglite.ts';
import { until } from '../support/until.ts';

let pglite: PGlite;
beforeAll(async () => {
  pglite = await openPglite();
});
afterAll(() => pglite.close());

test('a transaction of a handler may last longer than silentMs: nothing else is answered meanwhile, and nobody is gone', async () => {
  const db = drizzle({ client: pglite });
  const queue = createQueue();
  const work = defineJob('work');
  let [calls, gone] = [0, 0];
  const worker = createWorker(db, {
    queue,
    silentMs: 15_000,
    log: false,
    handlers: [
      handle<typeof work, typeof db>(work, async ({ db: own, complete }) => {
        calls++;
        await own.transaction(async (tx) => {
          await sleep(20_000);
          await complete(tx);
        });
      }),
    ],
  });
  worker.on('gone', () => gone++);
  onTestFinished(() => worker.stop());
  await worker.start();
  const { id } = await queue.enqueue(db, work);
  await until(async () => (await queue.find(db, id))?.state === 'completed');
  expect({ calls, gone }).toEqual({ calls: 1, gone: 0 });
});
