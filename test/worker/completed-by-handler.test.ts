import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  handleBatch,
  limitsIn,
  unvalidated,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 20 });
beforeAll(() => addControlTables(database));
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
  );
});

type Limits = Parameters<typeof limitsIn>[1][string];
const work = defineJob('work', {
  payload: unvalidated<{ group: string; n: number }>(),
  queue: 'exports',
  group: ({ group }) => group,
});
const jobs = (group: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ payload: { group, n } }));

type Transaction = Parameters<Parameters<typeof database.db.transaction>[0]>[0];
type Complete = (tx: Transaction) => Promise<void>;

/** Two workers whose handlers for group `a` end their jobs themselves and then wait until `open` is called. */
async function start(
  limits: Limits,
  end: (complete: Complete) => Promise<void> = (complete) => database.db.transaction(complete),
) {
  const queue = createQueue({ limits: limitsIn(control, { exports: limits }) });
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const began: string[] = [];
  let running = 0;
  let most = 0;
  const handlers = [
    handle(work, async ({ payload: { group, n }, complete }) => {
      began.push(`${group}${n}`);
      if (group !== 'a') return;
      most = Math.max(most, ++running);
      await end(complete);
      await opened;
      running--;
    }),
  ];
  for (let i = 0; i < 2; i++) {
    const worker = createWorker(database.db, { queue, handlers, queues: { exports: { concurrency: 5 } } });
    onTestFinished(() => {
      open();
      return worker.stop();
    });
    await worker.start();
  }
  return { queue, began, open, most: () => most };
}

/** Claims have looked at all groups since. */
async function passed({ queue, began }: Awaited<ReturnType<typeof start>>, n: number): Promise<void> {
  await queue.enqueueMany(
    database.db,
    work,
    Array.from({ length: 5 }, (_, group) => ({ payload: { group: `other ${group}`, n } })),
  );
  await until(
    () => began.filter((name) => name.startsWith('other') && name.endsWith(String(n))).length === 5,
  );
}

describe('a handler that has ended its job by complete(tx) and goes on', () => {
  test('keeps its slot in its group', async () => {
    const started = await start({ groups: { concurrency: 2 } });
    const { queue, began, open, most } = started;
    await queue.enqueueMany(database.db, work, jobs('a', 6));
    await until(async () => (await database.db.$count(queueJobs)) === 4);
    for (const n of [1, 2, 3]) await passed(started, n);
    expect(began.filter((name) => name.startsWith('a'))).toHaveLength(2);
    const { groups } = await queue.limits.groups(database.db, { queue: 'exports' });
    expect(groups.find(({ group }) => group === 'a')).toMatchObject({ running: 2, blockedBy: null });
    open();
    await until(async () => (await database.db.$count(queueJobs)) === 0 && began.length === 6 + 15);
    expect(most()).toBe(2);
    await until(async () => (await database.client`select from queue_holds`).length === 0);
  });

  test('keeps those behind it waiting, where the jobs of a group run one after the other', async () => {
    const started = await start({ groups: { serial: 'end' } });
    const { queue, began, open, most } = started;
    await queue.enqueueMany(database.db, work, jobs('a', 1));
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    await queue.enqueueMany(database.db, work, jobs('a', 3));
    for (const n of [1, 2, 3]) await passed(started, n);
    expect(began.filter((name) => name.startsWith('a'))).toEqual(['a0']);
    // What an operator does for a group that a discarded job has stopped does not touch it.
    expect(await queue.limits.unblock(database.db, { queue: 'exports', group: 'a' })).toBe(false);
    expect((await queue.check(database.db)).map(({ code }) => code)).not.toContain('groups-stopped');
    open();
    await until(async () => (await database.db.$count(queueJobs)) === 0 && began.length === 4 + 15);
    expect(began.filter((name) => name.startsWith('a'))).toEqual(['a0', 'a0', 'a1', 'a2']);
    expect(most()).toBe(1);
  });

  test('leaves nothing behind when its transaction is rolled back', async () => {
    const started = await start({ groups: { concurrency: 1 } }, async (complete) => {
      await database.db
        .transaction(async (tx) => {
          await complete(tx);
          throw new Error('rolled back');
        })
        .catch(() => undefined);
    });
    const { queue, began, open } = started;
    open();
    await queue.enqueueMany(database.db, work, jobs('a', 3));
    await until(() => began.length === 3);
    await until(async () => (await database.client`select from queue_holds`).length === 0);
  });

  test('keeps nobody waiting once its worker is gone', async () => {
    const { queue, began } = await start({ groups: { concurrency: 1 } });
    await database.client`
      insert into queue_workers (id, name, queues, seen_at) overriding system value
      values (424242, 'other', '[]', now() + interval '1 minute')`;
    await database.client`
      insert into queue_holds (queue, group_key, job_id, until, worker_id)
      values ('exports', 'b', 1, 'infinity', 424242)`;
    await queue.enqueueMany(database.db, work, jobs('b', 1));
    // A claim has met it, and left it.
    await until(
      async () => (await database.client`select from queue_groups where group_key = 'b'`).length === 1,
    );
    expect(began).toEqual([]);
    await database.client`update queue_workers set session = 2147483647 where id = 424242`;
    await until(() => began.length === 1);
    await until(async () => (await database.client`select from queue_holds`).length === 0);
  });
});

test('a batch handler that has ended its jobs keeps their slots until it has ended', async () => {
  const queue = createQueue({ limits: limitsIn(control, { exports: { groups: { concurrency: 2 } } }) });
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let running = 0;
  let most = 0;
  let calls = 0;
  const handlers = [
    handleBatch(work, { maxSize: 2, maxWaitMs: 0 }, async (batch, { complete }) => {
      calls++;
      running += batch.length;
      most = Math.max(most, running);
      await database.db.transaction(async (tx) => await complete(tx));
      await opened;
      running -= batch.length;
    }),
  ];
  for (let i = 0; i < 2; i++) {
    const worker = createWorker(database.db, { queue, handlers });
    onTestFinished(() => {
      open();
      return worker.stop();
    });
    await worker.start();
  }
  await queue.enqueueMany(database.db, work, jobs('a', 8));
  await until(async () => (await database.db.$count(queueJobs)) === 6);
  await queue.enqueueMany(database.db, work, jobs('b', 1));
  await until(
    async () => (await database.client`select from queue_results where group_key = 'b'`).length === 1,
  );
  expect(most).toBeLessThanOrEqual(3);
  open();
  await until(async () => (await database.db.$count(queueJobs)) === 0);
  await until(async () => (await database.client`select from queue_holds`).length === 0);
  expect(most).toBeLessThanOrEqual(3);
  expect(calls).toBeGreaterThan(3);
});
