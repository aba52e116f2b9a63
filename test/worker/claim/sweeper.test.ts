import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, drain, handle, unvalidated, type Worker } from 'drizzle-queue';
import { queueResults } from 'drizzle-queue/schema';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { gate } from '../../support/gate.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<number>() });
const DAY_MS = 24 * 3_600_000;

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

/** Due jobs of a kind that nobody serves, older than all others. */
async function fillUnserved(count: number): Promise<void> {
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
    select 'default', 'unserved', 'null', 20, now() - interval '2 days' + n * interval '1 ms'
    from generate_series(1, ${count}) as n`;
}

/** Jobs that were due for long when they came, amid those that nobody serves. */
const longDue = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ payload: n, runAt: new Date(Date.now() - DAY_MS - n * 10) }));

const completed = async (count: number) => (await database.db.$count(queueResults)) === count;

async function started(
  handlers: Parameters<typeof createWorker>[1]['handlers'],
  sent?: string[][],
): Promise<Worker> {
  const client = postgres(database.url, {
    max: 5,
    onnotice: () => {},
    debug: (_, text, parameters) => sent?.push([text, ...parameters.map(String)]),
  });
  const worker = createWorker(drizzle({ client }), { queue, handlers });
  onTestFinished(async () => {
    await worker.stop();
    await client.end();
  });
  const idle = nextEvent(worker, 'idle');
  await worker.start();
  // It has looked at its queue.
  await idle;
  return worker;
}

describe('a worker', () => {
  test('claims from the floors once it knows its queue, whatever lies behind them', async () => {
    await fillUnserved(20_000);
    const sent: string[][] = [];
    await started([handle(work, () => {})], sent);
    for (let n = 0; n < 30; n++) {
      await queue.enqueue(database.db, work, n);
      await until(() => completed(n + 1));
    }
    const claims = sent.filter(([text]) => text?.includes('skip locked'));
    expect(claims.length).toBeGreaterThan(20);
    expect(claims.filter((claim) => claim.some((value) => value.includes('-infinity')))).toEqual([]);
  });

  test('finds what lies behind the floors slice by slice', async () => {
    // Three slices.
    await fillUnserved(45_000);
    const sent: string[][] = [];
    await started([handle(work, () => {})], sent);
    await queue.enqueue(database.db, work, -1);
    await until(() => completed(1));
    await queue.enqueueMany(database.db, work, longDue(50));
    await until(() => completed(51));
    const slices = sent.filter(([text]) => text?.includes('overlooked'));
    expect(slices.length).toBeGreaterThan(2);
  });

  test('finds many jobs behind the floors, and does new ones meanwhile', async () => {
    const order: number[] = [];
    const enqueued = gate();
    await started([
      handle(work, ({ payload }) => {
        order.push(payload);
        // On a slow machine all would be done before the new one is there.
        return order.length > 500 ? enqueued.opened : undefined;
      }),
    ]);
    await queue.enqueue(database.db, work, -1);
    await until(() => completed(1));
    await queue.enqueueMany(database.db, work, longDue(30_000));
    await until(() => order.length > 500);
    // One whose commit takes longer than a second is behind the floors itself. Not all of these are.
    const fresh = [-2, -3, -4, -5, -6];
    for (const payload of fresh) await queue.enqueue(database.db, work, payload);
    enqueued.open();
    await until(() => completed(30_006));
    expect(new Set(order).size).toBe(30_006);
    const lastOld = order.findLastIndex((payload) => payload >= 0);
    expect(Math.min(...fresh.map((payload) => order.indexOf(payload)))).toBeLessThan(lastOld);
  });

  test('begins with the jobs of workers that died before it was started', async () => {
    await fillUnserved(20_000);
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, attempt, fence, worker_id, claimed_at, run_at)
      select 'default', 'work', to_jsonb(n), 20, 1, 1, 999, now(), now() - interval '1 minute'
      from generate_series(1, 50) as n`;
    await started([handle(work, () => {})]);
    expect(await runningMsUntil(until(() => completed(50)))).toBeLessThan(5_000);
  });
});

test('an urgent sweep begins with the newest jobs, however many older ones nobody serves', async () => {
  await fillUnserved(100_000);
  const sent: string[][] = [];
  const worker = await started([handle(work, () => {})], sent);
  const paused = nextEvent(worker, 'paused');
  await queue.pause(database.db, 'default');
  await paused;
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts, attempt, fence, worker_id, claimed_at, run_at)
    select 'default', 'work', to_jsonb(n), 20, 1, 1, 999, now(), now() - interval '10 s'
    from generate_series(1, 50) as n`;
  let before = 0;
  worker.on('resumed', () => {
    before = sent.length;
  });
  await queue.resume(database.db, 'default');
  await until(() => completed(50));
  const [slice = []] = sent.slice(before).filter(([text]) => text?.includes('overlooked'));
  const ranges = JSON.parse(slice.find((value) => value.startsWith('[{"queue"')) ?? '[]');
  // The older ones, in five slices, come last.
  expect(Date.parse(ranges[0]?.after)).toBeGreaterThan(Date.now() - 120_000);
});

test('a drain ends with nothing left, whoever held it', async () => {
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts, attempt, fence, worker_id, claimed_at)
    select 'default', 'work', to_jsonb(n), 20, 1, 1, 999, now() from generate_series(1, 20) as n`;
  await fillUnserved(5_000);
  const { completed, empty } = await drain(database.db, {
    queue,
    handlers: [handle(work, () => {})],
    deadlineMs: 20_000,
  });
  expect({ completed, empty }).toEqual({ completed: 20, empty: true });
});

test('a drain does not wait for a job that somebody has locked', async () => {
  const ids = (await queue.enqueueMany(database.db, work, [{ payload: 1 }, { payload: 2 }])).map(
    ({ id }) => id,
  );
  const drained = await database.client.begin(async (tx) => {
    await tx`select from queue_jobs where queue = 'default' and id = ${ids[0] ?? 0} for update`;
    return await drain(database.db, { queue, handlers: [handle(work, () => {})], deadlineMs: 20_000 });
  });
  expect(drained).toMatchObject({ completed: 1, empty: true });
});
