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
import { claimGroupedJobs } from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { readPages } from '../docs/pages.ts';
import { addWorkers, groupClaimOf } from '../queries/support/groups.ts';
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

async function start(options: Parameters<typeof createWorker>[1]) {
  const worker = createWorker(database.db, options as never);
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
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

test.each<[string, Limits, number]>([
  ['its limit', { groups: { concurrency: 1 } }, 0],
  ['its rate', { groups: { rate: { limit: 1, perMs: 3_600_000 } } }, 1],
])('for a drain, a group that has reached %s is empty', async (_, limits, completed) => {
  const queue = queueWith(limits);
  if (completed === 0) {
    const [other = 0] = await addWorkers(database.client);
    await database.client`update queue_workers set seen_at = now() + interval '1 hour'`;
    await queue.enqueue(database.db, work, 0);
    const claim = groupClaimOf(other, { queue: 'exports', kinds: ['work'], limits: { concurrency: 1 } });
    expect((await claimGroupedJobs(database.db, queue.limits.tables, claim)).jobs).toHaveLength(1);
  }
  await queue.enqueueMany(database.db, work, [{ payload: 1 }, { payload: 2 }]);
  const ran: number[] = [];
  const handlers = [handle(work, ({ payload }) => void ran.push(payload))];
  const drained = await drain(database.db, { queue, handlers, deadlineMs: 100_000 });
  expect(drained).toMatchObject({ completed, empty: true });
  expect(ran).toEqual([1, 2].slice(0, completed));
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

test.each(['snoozes and comes back', 'fails and is retried'])(
  'a job that %s is a start again',
  async (what) => {
    // A start may be spent within an eighth of the window. Where the process stands still for longer, right before its handler, this fails.
    const rate = { limit: 2, perMs: 2_000 };
    const queue = queueWith({ rate });
    const plain = defineJob('work', { payload: unvalidated<number>(), queue: 'exports', backoff: () => 0 });
    await queue.enqueue(database.db, plain, 1);
    const starts: number[] = [];
    await start({
      queue,
      handlers: [
        handle(plain, () => {
          starts.push(performance.now());
          if (starts.length === 5) return undefined;
          if (what === 'fails and is retried') throw new Error('not yet');
          return snooze(0);
        }),
      ],
    });
    await until(() => starts.length === 5);
    for (const [index, at] of starts.slice(rate.limit).entries())
      expect(at - (starts[index] ?? Number.NaN)).toBeGreaterThanOrEqual(rate.perMs);
  },
);

test('in a rolling deploy each worker keeps to the default of its own code', async () => {
  const plain = defineJob('work', { payload: unvalidated<number>(), queue: 'exports' });
  const most = [0, 0, 0];
  const running = [0, 0, 0];
  const enqueue = async () => {
    if ((await database.db.$count(queueJobs)) > 30) return;
    const entries = Array.from({ length: 60 }, (_, payload) => ({ payload }));
    await queueWith({ concurrency: 1 }).enqueueMany(database.db, plain, entries);
  };
  await enqueue();
  const BOTH = 2;
  const startVersion = async (worker: number, concurrency: number) => {
    const started = await start({
      queue: queueWith({ concurrency }),
      handlers: [
        handle(plain, async () => {
          for (const one of [worker, BOTH]) {
            running[one] = (running[one] ?? 0) + 1;
            most[one] = Math.max(most[one] ?? 0, running[one] ?? 0);
          }
          await delay(40);
          for (const one of [worker, BOTH]) running[one] = (running[one] ?? 0) - 1;
        }),
      ],
    });
    await ran(worker, 1);
    return started;
  };
  const ran = (worker: number, atOnce: number) =>
    until(async () => {
      await enqueue();
      return (most[worker] ?? 0) >= atOnce;
    });
  const old = await startVersion(0, 1);
  await startVersion(1, 4);
  await old.stop();
  await ran(1, 4);
  await database.client`delete from queue_jobs where worker_id is null`;
  await until(async () => (await database.db.$count(queueJobs)) === 0);
  expect(most).toEqual([1, 4, 4]);
});
