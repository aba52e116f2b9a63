import { createQueue, createWorker, defineJob, handle, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { afterEach, beforeAll, onTestFinished, test, vi } from 'vitest';
import { Patience } from '../../src/core/worker/begin/patience.ts';
import { addControlTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 8 });
const queue = createQueue({ limits: limitsIn(control, { q: { kinds: { few: { concurrency: 1 } } } }) });
const few = defineJob('few', { queue: 'q' });
const once = defineJob('once', { queue: 'q', maxAttempts: 1 });

/** More of each than are recorded at once where handlers are over at once. */
const JOBS = 300;

beforeAll(() => addControlTables(database));
afterEach(() => {
  vi.restoreAllMocks();
});

test('jobs on their last attempt begin beside those that wait for a slot of their kind', async () => {
  // What stands still for half a second would be given back.
  vi.spyOn(Patience.prototype, 'watch').mockImplementation(() => {});
  const end = gate();
  let isLong = false;
  const ran = { few: 0, once: 0 };
  const handlers = [
    handle(few, async () => {
      ran.few++;
      if (isLong) await end.opened;
    }),
    handle(once, () => void ran.once++),
  ];
  const worker = createWorker(database.db, { queue, handlers, queues: { q: { concurrency: 5 } } });
  onTestFinished(async () => {
    end.open();
    await worker.stop();
  });
  const enqueue = async () => {
    await queue.enqueueMany(database.db, few, new Array(JOBS).fill({}));
    await queue.enqueueMany(database.db, once, new Array(JOBS).fill({}));
  };
  await worker.start();
  // The worker learns that they are over at once, and claims ahead.
  await enqueue();
  await until(() => ran.few === JOBS && ran.once === JOBS);
  isLong = true;
  await enqueue();
  await until(() => ran.few > JOBS && ran.once === 2 * JOBS);
});

test('and beside those that have begun and whose kind has no slot', async () => {
  vi.spyOn(Patience.prototype, 'watch').mockImplementation(() => {});
  const end = gate();
  const ran = { few: 0, once: 0 };
  const handleFew = handle(few, async () => {
    ran.few++;
    await end.opened;
  });
  const another = createWorker(database.db, { queue, handlers: [handleFew] });
  const worker = createWorker(database.db, {
    queue,
    handlers: [handleFew, handle(once, () => void ran.once++)],
  });
  onTestFinished(async () => {
    end.open();
    await Promise.all([another.stop(), worker.stop()]);
  });
  await another.start();
  await queue.enqueue(database.db, few);
  await until(() => ran.few === 1);
  // The first claim brings one of them, and begins it; no job of the other kind has run in this process.
  await queue.enqueueMany(database.db, few, new Array(3).fill({ maxAttempts: 1 }));
  await queue.enqueueMany(database.db, once, new Array(10).fill({}));
  await worker.start();
  await until(() => ran.once === 10);
});
