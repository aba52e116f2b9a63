import { setTimeout as delay } from 'node:timers/promises';
import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  handle,
  limitsIn,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import { queueJobs, queueResults } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { readPages } from '../docs/pages.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
beforeAll(() => addControlTables(database));
// Not after each: the workers of a test stop later, and one that claims would wait for a TRUNCATE, and it for them.
beforeEach(async () => {
  await emptyTables(
    database.client,
    'queue_jobs',
    'queue_results',
    'queue_workers',
    'queue_groups',
    'queue_notes',
    'queue_holds',
    'queue_limits',
    'queue_usage',
  );
});

type Limits = Parameters<typeof limitsIn>[1][string];
const queueWith = (limits: Limits) => createQueue({ limits: limitsIn(control, { exports: limits }) });
const work = defineJob('work', { payload: unvalidated<number>(), queue: 'exports', group: () => 'a' });

async function start(options: Parameters<typeof createWorker>[1]): Promise<void> {
  const worker = createWorker(database.db, options as never);
  onTestFinished(() => worker.stop());
  await worker.start();
}

test('a row that was inserted by hand, without a note, is found', async () => {
  const queue = queueWith({ groups: {} });
  const ran: number[] = [];
  const handlers = [handle(work, ({ payload }) => void ran.push(payload))];
  await queue.enqueue(database.db, work, 1);
  await drain(database.db, { queue, handlers, deadlineMs: 20_000 });
  // Nobody looks at the group any more, as in one that has been idle.
  await database.client`update queue_groups set ready_at = 'infinity'`;
  await database.client`delete from queue_notes`;
  await database.db.insert(queueJobs).values({
    queue: 'exports',
    kind: 'work',
    payload: 2,
    groupKey: 'a',
    maxAttempts: 1,
  });
  await start({ queue, handlers });
  await until(() => ran.length === 2);
  expect(ran).toEqual([1, 2]);
});

test('once a queue has groups no longer, the statement of the guide lets its jobs run', async () => {
  const grouped = queueWith({ groups: {} });
  const { id } = await grouped.enqueue(database.db, work, 1);
  const { id: held } = await grouped.enqueue(database.db, work, 2);
  // Its worker has died.
  await database.client`
    update queue_jobs set worker_id = 1000000, fence = 1, attempt = 1, claimed_at = now() where id = ${held}`;
  const plain = defineJob('work', { payload: unvalidated<number>(), queue: 'exports' });
  const queue = createQueue();
  const ran: number[] = [];
  const options = {
    queue,
    handlers: [handle(plain, ({ payload }) => void ran.push(payload))],
    deadlineMs: 20_000,
  };
  await drain(database.db, options);
  expect(ran).toEqual([]);
  const page = readPages().find(({ path }) => path === 'docs/limits.md');
  const [statement] = (page?.blocks ?? []).filter(({ code }) => code.includes('set group_key = null'));
  await database.client.unsafe(statement?.code ?? '');
  await drain(database.db, options);
  expect(ran.sort()).toEqual([1, 2]);
  const results = await database.db.select().from(queueResults);
  expect(results.map(({ jobId }) => jobId).sort()).toEqual([id, held].sort());
});

test('an attempt that timed out counts no more, although its handler goes on', async () => {
  const queue = queueWith({ concurrency: 1 });
  const slow = defineJob('slow', {
    payload: unvalidated<number>(),
    queue: 'exports',
    timeoutMs: 100,
    maxAttempts: 1,
  });
  await queue.enqueueMany(database.db, slow, [{ payload: 1 }, { payload: 2 }]);
  const events: string[] = [];
  await start({
    queue,
    handlers: [
      handle(slow, async ({ payload }) => {
        events.push(`begin ${payload}`);
        if (payload === 1) await until(() => events.includes('begin 2'));
        events.push(`end ${payload}`);
      }),
    ],
  });
  await until(() => events.includes('end 1'));
  expect(events.slice(0, 2)).toEqual(['begin 1', 'begin 2']);
});

test('a job that snoozes and comes back is a start again', async () => {
  // A start may be spent within an eighth of the window. Where the process stands still for longer, right before its handler, this fails.
  const rate = { limit: 2, perMs: 2_000 };
  const queue = queueWith({ rate });
  const plain = defineJob('work', { payload: unvalidated<number>(), queue: 'exports' });
  await queue.enqueue(database.db, plain, 1);
  const starts: number[] = [];
  await start({
    queue,
    handlers: [
      handle(plain, () => {
        starts.push(performance.now());
        return starts.length < 5 ? snooze(0) : undefined;
      }),
    ],
  });
  await until(() => starts.length === 5);
  for (const [index, at] of starts.slice(rate.limit).entries())
    expect(at - (starts[index] ?? Number.NaN)).toBeGreaterThanOrEqual(rate.perMs);
});

test('in a rolling deploy each worker keeps to the default of its own code', async () => {
  const plain = defineJob('work', { payload: unvalidated<number>(), queue: 'exports' });
  const most = [0, 0, 0];
  const running = [0, 0, 0];
  let done = 0;
  await queueWith({ concurrency: 1 }).enqueueMany(
    database.db,
    plain,
    Array.from({ length: 60 }, (_, payload) => ({ payload })),
  );
  const BOTH = 2;
  for (const [worker, concurrency] of [1, 4].entries()) {
    await start({
      queue: queueWith({ concurrency }),
      handlers: [
        handle(plain, async () => {
          for (const one of [worker, BOTH]) {
            running[one] = (running[one] ?? 0) + 1;
            most[one] = Math.max(most[one] ?? 0, running[one] ?? 0);
          }
          await delay(40);
          for (const one of [worker, BOTH]) running[one] = (running[one] ?? 0) - 1;
          done++;
        }),
      ],
    });
  }
  await until(() => done === 60);
  expect(most[0]).toBeLessThanOrEqual(1);
  expect(most[BOTH]).toBeLessThanOrEqual(4);
});
