import { createQueue, createWorker, defineJob, handle, limitsIn } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

/** Longer than a queue is polled often after a job. */
const HANDLER_MS = 400;

const database = useTestDatabase({ max: 8 });
const queue = createQueue({ limits: limitsIn(control, { q: { kinds: { few: { concurrency: 1 } } } }) });
const few = defineJob('few', { queue: 'q' });
const other = defineJob('other', { queue: 'q' });

beforeAll(() => addControlTables(database));

test('a slot that a kind has is used at once when it is free, although others run', async () => {
  const end = gate();
  const ran = { few: 0, other: 0 };
  const worker = createWorker(database.db, {
    queue,
    // No look at what is due comes before the test is over.
    pollIntervalMs: 60_000,
    queues: { q: { concurrency: 5 } },
    handlers: [
      handle(few, async () => {
        ran.few++;
        await new Promise((resolve) => setTimeout(resolve, HANDLER_MS));
      }),
      handle(other, async () => {
        ran.other++;
        await end.opened;
      }),
    ],
  });
  onTestFinished(async () => {
    end.open();
    await worker.stop();
  });
  await worker.start();
  await queue.enqueue(database.db, other);
  await until(() => ran.other === 1);
  await queue.enqueueMany(database.db, few, new Array(6).fill({}));
  await until(() => ran.few === 3);
  // Nor does one at the limits.
  const app = await database.client.reserve();
  onTestFinished(() => app.release());
  await app`begin`;
  onTestFinished(async () => void (await app`rollback`));
  await app`lock table queue_limits in access exclusive mode`;
  // Long before one comes all the same.
  await until(() => ran.few === 6, { timeoutMs: 20_000 });
});

test('jobs that wait for a slot of their kind do not have those given back that others begin', async () => {
  const end = gate();
  const lost = new Set<string>();
  let isLong = false;
  let stalled = false;
  let began = 0;
  let lastMs = 0;
  const worker = createWorker(database.db, {
    queue,
    queues: { q: { concurrency: 5 } },
    handlers: [
      handle(few, () => (isLong ? end.opened : undefined)),
      handle(other, async () => {
        const nowMs = performance.now();
        stalled ||= isLong && nowMs - lastMs > HANDLER_MS / 2;
        lastMs = nowMs;
        began++;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }),
    ],
  });
  worker.on('interrupted', ({ job }) => lost.add(job.kind));
  onTestFinished(async () => {
    end.open();
    await worker.stop();
  });
  await worker.start();
  const many = async (count: number) =>
    await queue.enqueueMany(database.db, other, new Array(count).fill({}));
  const rest = async () => await until(async () => (await database.db.$count(queueJobs)) === 0);
  // It learns that both are short.
  await queue.enqueueMany(database.db, few, new Array(50).fill({}));
  await many(50);
  await rest();
  do {
    // A busy machine may lack the time for any of them: once more.
    stalled = false;
    lost.delete(other.kind);
    isLong = true;
    lastMs = performance.now();
    await queue.enqueueMany(database.db, few, new Array(20).fill({}));
    const before = began;
    await many(1_000);
    await until(() => began === before + 1_000);
    await database.client`delete from queue_jobs where worker_id is null`;
  } while (stalled && lost.has(other.kind));
  expect(lost).toEqual(new Set(['few']));
});
