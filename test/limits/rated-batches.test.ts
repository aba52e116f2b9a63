import { createQueue, createWorker, defineJob, handle, handleBatch, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { QueueLimiter } from '../../src/features/limits/worker/queue-limiter.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const RATED = 40;
const OTHERS = 3_000;

const database = useTestDatabase({ max: 8 });
const rate = { limit: 10, perMs: 500 };
const queue = createQueue({ limits: limitsIn(control, { q: { kinds: { rated: { rate } } } }) });
const rated = defineJob('rated', { queue: 'q' });
const other = defineJob('other', { queue: 'q' });

beforeAll(() => addControlTables(database));

test('batches of a kind with a rate begin where jobs of another kind take each slot that is free', async () => {
  const ran = { rated: 0, other: 0 };
  const worker = createWorker(database.db, {
    queue,
    queues: { q: { concurrency: 5 } },
    handlers: [
      handleBatch(rated, { maxSize: 5, maxWaitMs: 10 }, async (jobs) => {
        ran.rated += jobs.length;
      }),
      handle(other, async () => {
        await new Promise((resolve) => setTimeout(resolve, 10));
        ran.other++;
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  await queue.enqueueMany(database.db, other, new Array(OTHERS).fill({}));
  await worker.start();
  await until(() => ran.other > 100);
  // Those that are due first.
  await queue.enqueueMany(database.db, rated, new Array(RATED).fill({ priority: 0 }));
  await until(() => ran.rated === RATED || ran.other === OTHERS);
  expect(ran.rated).toBe(RATED);
});

test('a batch whose starts become void just before it begins keeps no slot', async () => {
  let ran = 0;
  const worker = createWorker(database.db, {
    queue,
    queues: { q: { concurrency: 1 } },
    handlers: [
      handleBatch(rated, { maxSize: 5, maxWaitMs: 10 }, async (jobs) => {
        ran += jobs.length;
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  const { mostTogether } = QueueLimiter.prototype;
  let hasPassed = false;
  let isVoid = false;
  // The clock passes their end between the look and the beginning.
  const spy = vi.spyOn(QueueLimiter.prototype, 'mostTogether').mockImplementation(function (
    this: QueueLimiter,
    jobs,
  ) {
    isVoid = hasPassed && !isVoid;
    const most = isVoid ? 0 : mostTogether.call(this, jobs);
    hasPassed = most > 0;
    return most;
  });
  onTestFinished(() => spy.mockRestore());
  await queue.enqueueMany(database.db, rated, new Array(5).fill({}));
  await worker.start();
  await until(() => isVoid);
  spy.mockRestore();
  await until(() => ran === 5);
});

test('a batch that lacks starts of its kind does not hold up those of others', async () => {
  const perMinute = { rate: { limit: 10, perMs: 60_000 } };
  const costs = createQueue({ limits: limitsIn(control, { costs: { kinds: { costly: perMinute } } }) });
  // What they cost is not known before they are claimed: more are than may begin.
  const costly = defineJob('costly', { queue: 'costs', cost: () => 6 });
  const free = defineJob('free', { queue: 'costs' });
  const called: string[] = [];
  const interrupted: string[] = [];
  const options = { maxSize: 1, maxWaitMs: 10 };
  const worker = createWorker(database.db, {
    queue: costs,
    handlers: [
      handleBatch(costly, options, async () => void called.push('costly')),
      handleBatch(free, options, async () => void called.push('free')),
    ],
  });
  worker.on('interrupted', ({ job }) => interrupted.push(job.kind));
  onTestFinished(() => worker.stop());
  await costs.enqueueMany(database.db, costly, new Array(5).fill({ priority: 0 }));
  await costs.enqueueMany(database.db, free, [{}]);
  await worker.start();
  await until(() => called.includes('free'));
  expect(interrupted.filter((kind) => kind === 'free')).toEqual([]);
});

test('a batch that waits for starts of its kind lets those of others gather on', async () => {
  const perMinute = { rate: { limit: 10, perMs: 60_000 } };
  const costs = createQueue({ limits: limitsIn(control, { gathers: { kinds: { costly: perMinute } } }) });
  const costly = defineJob('costly', { queue: 'gathers', cost: () => 6 });
  const free = defineJob('free', { queue: 'gathers' });
  const interrupted: string[] = [];
  let together = 0;
  const worker = createWorker(database.db, {
    queue: costs,
    handlers: [
      handleBatch(costly, { maxSize: 1, maxWaitMs: 10 }, async () => undefined),
      // Longer than the others wait until they are given back.
      handleBatch(free, { maxSize: 100, maxWaitMs: 2_000 }, async (jobs) => {
        together = jobs.length;
      }),
    ],
  });
  worker.on('interrupted', ({ job }) => interrupted.push(job.kind));
  onTestFinished(() => worker.stop());
  await costs.enqueueMany(database.db, costly, new Array(5).fill({ priority: 0 }));
  await costs.enqueueMany(database.db, free, new Array(3).fill({}));
  await worker.start();
  await until(() => together === 3);
  expect(interrupted).toContain('costly');
  expect(interrupted).not.toContain('free');
});
