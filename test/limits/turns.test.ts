import { setTimeout as sleep } from 'node:timers/promises';
import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { wakeChannel } from '../../src/core/sql/wake-channel.ts';
import { takeLease } from '../../src/features/limits/queries/take-lease.ts';
import { successorsIn } from '../../src/features/limits/worker/leases.ts';
import { clearTables, limitTables } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 12 });
const queue = createQueue({ limits: limitsIn(control, { few: { concurrency: 2 } }) });
const few = defineJob('few', { payload: unvalidated<null>(), queue: 'few' });

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(database.client, 'queue_usage');
});

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
  // The one that was told last may not have claimed yet.
  await until(() => [...begun.values()].every((jobs) => jobs > 0));
  expect(most).toBe(2);
});

test('without notifications each worker finds its turn, too', async () => {
  const names = ['a', 'b', 'c', 'd'];
  const begun = new Set<string>();
  let running = 0;
  let most = 0;
  for (const name of names) {
    const handler = handle(few, async () => {
      begun.add(name);
      most = Math.max(most, ++running);
      await sleep(10);
      running--;
    });
    const worker = createWorker(database.db, { queue, handlers: [handler], name, listen: false });
    onTestFinished(() => worker.stop());
    await worker.start();
  }
  await until(async () => {
    const [row] = await database.client`select count(*)::int4 as jobs from queue_jobs`;
    const entries = Array.from({ length: 200 }, () => ({ payload: null }));
    if (Number(row?.jobs) < 100) await queue.enqueueMany(database.db, few, entries);
    return begun.size === names.length;
  });
  expect(most).toBe(2);
  await database.client`delete from queue_jobs where worker_id is null`;
});

test('among more than a hundred workers none is told, since each of them would hear each notification', async () => {
  const told: number[] = [];
  const listening = await database.client.listen(wakeChannel(queue.tables), (payload) => {
    told.push(...successorsIn(payload));
  });
  onTestFinished(() => listening.unlisten());
  const wish = { queue: 'few', kind: '', declared: 2, running: 0, wants: 1, era: 0 };
  const names = Array.from({ length: 101 }, (_, n) => `w${n}`);
  const ids: number[] = [];
  for (const name of names)
    ids.push(await registerWorker(database.db, limitTables, { name, queues: ['few'] }));
  for (const workerId of ids) await takeLease(database.db, limitTables, { ...wish, workerId, want: 0 });
  // They send no heartbeats, and must not be taken for gone while a slow machine gets there.
  await database.client`update queue_workers set seen_at = now() + interval '1 hour'`;
  const worker = createWorker(database.db, { queue, handlers: [handle(few, () => sleep(10))] });
  onTestFinished(() => worker.stop());
  await queue.enqueueMany(
    database.db,
    few,
    Array.from({ length: 5_000 }, () => ({ payload: null })),
  );
  await worker.start();
  /** Its lease: what it has, and what it wants. */
  const lease = async () => {
    const [row] = await database.client<{ leases: Record<string, number[]> }[]>`
      select leases from queue_usage where queue = 'few'`;
    const [has = 0, wants = 0] =
      Object.entries(row?.leases ?? {}).find(([id]) => !ids.includes(Number(id)))?.[1] ?? [];
    return { has, wants };
  };
  await until(async () => (await lease()).has > 0);
  // After its turn it gives its slot back, although it has more to do.
  await until(async () => {
    const { has, wants } = await lease();
    return has === 0 && wants > 0;
  });
  await worker.stop();
  // Its slots were for those named here; a notification of this one comes after any of them.
  await database.client.notify(wakeChannel(queue.tables), '\u0002-1');
  await until(() => told.includes(-1));
  expect(told).toEqual([-1]);
});
