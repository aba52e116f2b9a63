import { setTimeout as sleep } from 'node:timers/promises';
import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { wakeChannel } from '../../src/core/sql/wake-channel.ts';
import { successorsIn } from '../../src/features/limits/worker/successors.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 12 });
const queue = createQueue({ limits: limitsIn(control, { few: { concurrency: 2 } }) });
const few = defineJob('few', { payload: unvalidated<null>(), queue: 'few' });

beforeAll(() => addControlTables(database));

test('where there are more workers than slots, each that has had its turn tells the next one of its slot', async () => {
  const told: number[] = [];
  const listening = await database.client.listen(wakeChannel(queue.tables), (payload) => {
    told.push(...successorsIn(payload));
  });
  onTestFinished(() => listening.unlisten());
  let running = 0;
  let most = 0;
  const names = ['a', 'b', 'c', 'd'];
  const begun = new Map(names.map((name) => [name, 0]));
  const workers = names.map((name) => {
    const handler = handle(few, async () => {
      begun.set(name, (begun.get(name) ?? 0) + 1);
      most = Math.max(most, ++running);
      await sleep(10);
      running--;
    });
    const worker = createWorker(database.db, { queue, handlers: [handler], name });
    onTestFinished(() => worker.stop());
    return worker;
  });
  await queue.enqueueMany(
    database.db,
    few,
    Array.from({ length: 5_000 }, () => ({ payload: null })),
  );
  await Promise.all(workers.map((worker) => worker.start()));
  await until(() => new Set(told).size === names.length);
  const rows = await database.client<{ id: number }[]>`select id::int from queue_workers`;
  expect(rows.map(({ id }) => id).sort()).toEqual([...new Set(told)].sort());
  for (const [name, jobs] of begun) expect.soft([name, jobs > 0]).toEqual([name, true]);
  expect(most).toBe(2);
});
