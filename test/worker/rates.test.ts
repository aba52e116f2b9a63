import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  type Handler,
  handle,
  handleBatch,
  limitsIn,
  type Queue,
  unvalidated,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import postgres from 'postgres';
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { queue as queueOfProcesses, RATE, rated } from './fixtures/rated-jobs.ts';
import { type Rate, Starts } from './support/starts.ts';
import { startWorkerProcess } from './worker-process.ts';

const database = useTestDatabase({ max: 10 });
beforeAll(() => addControlTables(database));
const workers: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await database.client.unsafe(`
    delete from queue_jobs; delete from queue_results; delete from queue_groups; delete from queue_notes;
    delete from queue_holds; delete from queue_limits; delete from queue_usage`);
});

type Limits = Parameters<typeof limitsIn>[1][string];

const work = defineJob('work', { payload: unvalidated<number>(), queue: 'mail' });
const other = defineJob('other', { payload: unvalidated<number>(), queue: 'mail' });
const limited = (mail: Limits) => createQueue({ limits: limitsIn(control, { mail }) });
const HOUR_MS = 3_600_000;

async function start(
  queue: Queue,
  handlers: readonly Handler[],
  { concurrency = 10, db = database.db as Database } = {},
) {
  const worker = createWorker(db, { queue, handlers, queues: { mail: { concurrency } } });
  workers.push(worker);
  await worker.start();
  return worker;
}

const numbered = (count: number) => Array.from({ length: count }, (_, payload) => ({ payload }));

describe('no window sees more handlers begin than the rate', () => {
  const rate: Rate = { limit: 10, perMs: 500 };

  test('of a queue, in two workers together, which use it', async () => {
    const queue = limited({ rate });
    const starts = new Starts();
    await queue.enqueueMany(database.db, work, numbered(60));
    const handlers = [handle(work, () => void starts.note())];
    for (let n = 0; n < 2; n++) await start(queue, handlers);
    await until(() => starts.count === 60);
    starts.expectWithin(rate);
    // Five windows are needed. A busy machine takes more, though not as many as if each start waited for a window.
    expect(starts.spanMs).toBeLessThan(30 * rate.perMs);
  });

  test('of a kind, where handlers are slow in between and jobs are claimed ahead', async () => {
    const queue = limited({ kinds: { work: { rate } } });
    const starts = new Starts();
    await queue.enqueueMany(database.db, work, numbered(50));
    const handlers = [
      handle(work, async ({ payload }) => {
        starts.note();
        if (payload % 7 !== 3) return;
        const others = Math.min(starts.count + 3, 50);
        await until(() => starts.count >= others);
      }),
    ];
    for (let n = 0; n < 2; n++) await start(queue, handlers, { concurrency: 3 });
    await until(() => starts.count === 50);
    starts.expectWithin(rate);
  });

  test('by costs; one that costs more than the limit takes all of it', async () => {
    const queue = limited({ rate });
    const heavy = defineJob('heavy', {
      payload: unvalidated<number>(),
      queue: 'mail',
      cost: (cost) => cost,
    });
    const starts = new Starts();
    const costs = [4, 4, 4, 25, 1, 6, 5, 3, 10, 2];
    await queue.enqueueMany(
      database.db,
      heavy,
      costs.map((payload) => ({ payload })),
    );
    const handlers = [handle(heavy, ({ payload }) => void starts.note(Math.min(payload, rate.limit)))];
    await start(queue, handlers, { concurrency: 2 });
    await until(() => starts.count === costs.length);
    starts.expectWithin(rate);
  });

  test('with a batch handler, whose call is a start of each of its jobs', async () => {
    const batchRate = { limit: 5, perMs: 500 };
    const queue = limited({ rate: batchRate });
    const starts = new Starts();
    await queue.enqueueMany(database.db, work, numbered(23));
    const handlers = [
      handleBatch(work, { maxSize: 10, maxWaitMs: 20 }, (jobs) => {
        starts.note(jobs.length);
      }),
    ];
    for (let n = 0; n < 2; n++) await start(queue, handlers);
    await until(() => starts.cost === 23);
    starts.expectWithin(batchRate);
  });

  test('when it is lowered and raised at run time', async () => {
    const queue = limited({ rate: { limit: 1_000, perMs: 1_000 } });
    const starts = new Starts();
    await queue.enqueueMany(database.db, work, numbered(3_000));
    await start(queue, [handle(work, () => void starts.note())]);
    await until(() => starts.count >= 500);
    const lower = { limit: 5, perMs: 1_000 };
    await queue.limits.set(database.db, { queue: 'mail' }, { rate: lower });
    // Eleven are more than two windows of it let begin.
    await until(() => starts.spanOfLastMs(11) >= 2 * lower.perMs);
    starts.restart();
    await until(() => starts.count >= 11);
    starts.expectWithin(lower);
    const slow = starts.count;
    expect(slow).toBeGreaterThan(0);
    await queue.limits.set(database.db, { queue: 'mail' }, null);
    await until(() => starts.count > slow + 500);
  });

  test('when an answer is lost', async () => {
    const queue = limited({ rate });
    const starts = new Starts();
    await queue.enqueueMany(database.db, work, numbered(40));
    let asked = 0;
    const client = postgres(database.url, { max: 5 });
    onTestFinished(() => client.end());
    const db = losing(
      drizzle({ client }),
      (text) => /passing as materialized/.test(text) && asked++ % 3 === 1,
    );
    await start(queue, [handle(work, () => void starts.note())], { db });
    await until(() => starts.count === 40);
    expect(asked).toBeGreaterThan(3);
    starts.expectWithin(rate);
  });
});

test('no window sees more handlers begin in three processes, one of which is killed', async () => {
  await queueOfProcesses.enqueueMany(database.db, rated, numbered(200));
  const env = { DATABASE_URL: database.url };
  const processes = Array.from({ length: 3 }, () =>
    startWorkerProcess('worker/fixtures/rated-worker.ts', env),
  );
  onTestFinished(async () => {
    await Promise.all(processes.map((process) => process.end('SIGKILL')));
  });
  const [first] = processes;
  await first?.printed('began');
  first?.child.kill('SIGKILL');
  const begun = () => processes.flatMap((process) => [...process.output().matchAll(/began ([\d.]+)/g)]);
  // What the killed one held is taken over, and may begin again.
  await until(async () => (await database.db.$count(queueJobs)) === 0);
  const starts = new Starts();
  for (const [, atMs] of begun()) starts.note(1, Number(atMs));
  expect(starts.count).toBeGreaterThanOrEqual(200);
  starts.expectWithin(RATE);
});

test('priorities hold in a queue with a rate, and nothing of it is in a group', async () => {
  const queue = limited({ rate: { limit: 3, perMs: 300 } });
  const order: number[] = [];
  for (const priority of [9, 5, 2, 0]) {
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 3 }, () => ({ payload: priority, priority })),
    );
  }
  expect(await database.db.$count(queueJobs)).toBe(12);
  await start(queue, [handle(work, ({ payload }) => void order.push(payload))], { concurrency: 3 });
  await until(() => order.length === 12);
  expect(order).toEqual([0, 0, 0, 2, 2, 2, 5, 5, 5, 9, 9, 9]);
  expect(await database.client`select from queue_groups`).toHaveLength(0);
});

test('jobs grow more urgent with time in a queue with a rate', async () => {
  const queue = limited({ rate: { limit: 100, perMs: 1_000 } });
  const order: number[] = [];
  const young = Array.from({ length: 30 }, () => ({ payload: 2, priority: 2 }));
  const runAt = new Date(Date.now() - HOUR_MS);
  const old = Array.from({ length: 30 }, () => ({ payload: 9, priority: 9, runAt }));
  await queue.enqueueMany(database.db, work, [...young, ...old]);
  const worker = createWorker(database.db, {
    queue,
    handlers: [handle(work, ({ payload }) => void order.push(payload))],
    queues: { mail: { concurrency: 1, aging: { afterMs: 1_000 } } },
  });
  workers.push(worker);
  await worker.start();
  await until(() => order.length === 60);
  // The first claims do not know yet where each priority begins.
  expect(order.slice(-20)).toEqual(new Array(20).fill(2));
});

test('a kind whose rate is used up costs no attempt, and few of its jobs are held', async () => {
  const queue = limited({ kinds: { work: { rate: { limit: 2, perMs: HOUR_MS } } } });
  await queue.enqueueMany(database.db, work, numbered(200));
  await queue.enqueueMany(database.db, other, numbered(20));
  let others = 0;
  await start(queue, [handle(work, () => {}), handle(other, () => void others++)]);
  await until(() => others === 20);
  await until(async () => (await held()).length === 0);
  const rows = await database.client`select distinct attempt from queue_jobs`;
  expect(rows).toEqual([{ attempt: 0 }]);
  expect(await database.db.$count(queueJobs)).toBe(198);
});

test('nothing is claimed from a queue whose rate is used up', async () => {
  const queue = limited({ rate: { limit: 2, perMs: HOUR_MS } });
  await queue.enqueueMany(database.db, work, numbered(200));
  const worker = await start(queue, [handle(work, () => {})]);
  await until(async () => (await database.db.$count(queueJobs)) === 198 && (await held()).length === 0);
  let claimed = 0;
  worker.on('claimed', ({ count }) => {
    claimed += count;
  });
  // It is told of these, and looks once a second whether the rate was raised.
  await queue.enqueueMany(database.db, work, numbered(20));
  const renewals = async () => await database.client`select seen_at::text from queue_workers`;
  const [before] = await renewals();
  await until(async () => (await renewals())[0]?.seen_at !== before?.seen_at);
  expect(claimed).toBe(0);
  expect(await database.client`select distinct attempt from queue_jobs`).toEqual([{ attempt: 0 }]);
  // It has not forgotten them.
  await queue.limits.set(database.db, { queue: 'mail' }, { rate: { limit: 5, perMs: HOUR_MS } });
  await until(async () => (await database.db.$count(queueJobs)) === 215);
});

test('a rate that is not reached costs a few statements, and not one for each job', async () => {
  const queue = limited({ rate: { limit: 1_000_000, perMs: 1_000 } });
  let asked = 0;
  const client = postgres(database.url, {
    debug: (_, text) => {
      if (/passing as materialized/.test(text)) asked++;
    },
  });
  onTestFinished(() => client.end());
  const startMs = performance.now();
  let done = 0;
  await queue.enqueueMany(database.db, work, numbered(5_000));
  await start(queue, [handle(work, () => void done++)], { db: drizzle({ client }) });
  await until(() => done === 5_000);
  expect(asked).toBeLessThan(40 + (performance.now() - startMs) / 20);
});

const held = async () => await database.client`select id from queue_jobs where worker_id is not null`;

type PrepareQuery = (
  query: { readonly sql: string },
  ...rest: unknown[]
) => { execute(...given: unknown[]): Promise<unknown> };

/** A database that carries out some statements, and loses their answers. */
function losing<T extends Database>(db: T, loses: (text: string) => boolean): T {
  // Drizzle's types leave it out.
  const { session } = db as unknown as { session: { prepareQuery: PrepareQuery } };
  const prepare = session.prepareQuery.bind(session);
  session.prepareQuery = (query, ...rest) => {
    const prepared = prepare(query, ...rest);
    if (!loses(query.sql)) return prepared;
    const execute = prepared.execute.bind(prepared);
    prepared.execute = async (...given: unknown[]) => {
      await execute(...given);
      throw Object.assign(new Error('the connection is lost'), { code: 'CONNECTION_CLOSED' });
    };
    return prepared;
  };
  return db;
}
