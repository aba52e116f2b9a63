import { sql } from 'drizzle-orm';
import { integer, text } from 'drizzle-orm/pg-core';
import {
  createQueue,
  type Database,
  defineJob,
  drain,
  type HandlerContext,
  handle,
  handleBatch,
  limitsIn,
  NonRetryableError,
  unvalidated,
} from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const tables = createQueueTables({
  columns: { tenantId: text('tenant_id').notNull(), seats: integer('seats').default(1) },
});
const queue = createQueue({
  tables,
  limits: limitsIn(control, {
    ordered: { groups: { serial: 'success' } },
    shared: { groups: { concurrency: 2, rate: { limit: 1_000, perMs: 1_000 } } },
    few: { concurrency: 2, kinds: { few: { concurrency: 1 } } },
  }),
  keys: control.queueKeys,
});
const payload = unvalidated<number>();
const ordered = defineJob('ordered', { payload, queue: 'ordered' });
const shared = defineJob('shared', { payload, queue: 'shared' });
const few = defineJob('few', { payload, queue: 'few' });
const batched = defineJob('batched', { payload, queue: 'batched' });

const database = useTestDatabase();
beforeAll(async () => {
  await addControlTables(database);
  for (const table of ['queue_jobs', 'queue_results'])
    await database.client.unsafe(
      `alter table ${table} add column tenant_id text not null, add column seats int default 1`,
    );
});
beforeEach(async () => {
  await emptyTables(
    database.client,
    'queue_jobs',
    'queue_results',
    'queue_groups',
    'queue_notes',
    'queue_holds',
    'queue_keys',
    'queue_usage',
  );
});

type Context<TJob extends typeof ordered | typeof shared | typeof few> = HandlerContext<
  TJob,
  Database,
  typeof queue
>;
const deadlineMs = 20_000;
const entries = (...ns: number[]) =>
  ns.map((n) => ({ payload: n, tenantId: `t${n % 2}`, group: `g${n % 2}`, seats: n }));

test('reach handlers of jobs that are claimed by their groups, and go along with a redrive', async () => {
  await queue.enqueueMany(database.db, ordered, entries(1, 2, 3, 4));
  const rows = database.db.select({ n: sql<number>`n`.as('n') }).from(sql`generate_series(5, 5) as n`);
  const from = defineJob('ordered', { payload: unvalidated<{ n: number }>(), queue: 'ordered' });
  await queue.enqueueFrom(database.db, from, rows, { group: 'g5', tenantId: (row) => sql`'t' || ${row.n}` });
  const seen: unknown[] = [];
  let fails = true;
  const handler = handle(ordered, ({ payload, job }: Context<typeof ordered>) => {
    seen.push([job.tenantId, job.seats]);
    if (payload === 1 && fails) throw new NonRetryableError('once');
  });
  await drain(database.db, { queue, handlers: [handler], deadlineMs });
  expect(seen).toHaveLength(4);
  expect(seen).toEqual(
    expect.arrayContaining([
      ['t1', 1],
      ['t0', 2],
      ['t0', 4],
      ['t5', 1],
    ]),
  );
  fails = false;
  seen.length = 0;
  expect((await queue.redrive(database.db, { queue: 'ordered' })).redriven).toBe(1);
  await drain(database.db, { queue, handlers: [handler], deadlineMs });
  expect(seen).toEqual([
    ['t1', 1],
    ['t1', 3],
  ]);
  expect(
    (await queue.list(database.db, { queue: 'ordered', group: 'g1', tenantId: 't1' })).jobs,
  ).toHaveLength(2);
});

test('reach handlers beside limits of groups, of a queue and of a kind', async () => {
  await queue.enqueueMany(database.db, shared, entries(1, 2, 3));
  await queue.enqueueMany(database.db, few, [{ payload: 4, tenantId: 't4' }]);
  const seen: unknown[] = [];
  await drain(database.db, {
    queue,
    handlers: [
      handle(shared, ({ job }: Context<typeof shared>) => void seen.push(job.tenantId)),
      handle(few, ({ job }: Context<typeof few>) => void seen.push(job.tenantId)),
    ],
    deadlineMs,
  });
  expect(seen.sort()).toEqual(['t0', 't1', 't1', 't4']);
});

test('reach batch handlers', async () => {
  const jobs = [1, 2].map((n) => ({ payload: n, tenantId: `t${n}`, seats: n }));
  await queue.enqueueMany(database.db, batched, jobs);
  const seen: unknown[] = [];
  const handler = handleBatch<typeof batched, Database, typeof queue>(
    batched,
    { maxSize: 10, maxWaitMs: 100 },
    (jobs) => void seen.push(...jobs.map(({ job }) => [job.tenantId, job.seats])),
  );
  await drain(database.db, { queue, handlers: [handler], deadlineMs });
  expect(seen).toEqual([
    ['t1', 1],
    ['t2', 2],
  ]);
});

test('are those of the last call of a key, and those of the first where later ones are refused', async () => {
  const { db } = database;
  const call = (seats: number) => ({ tenantId: `t${seats}`, seats, group: 'g' });
  for (const seats of [1, 2]) {
    await queue.enqueue(db, shared, 1, { ...call(seats), debounce: { key: 'd', delayMs: 60_000 } });
    await queue.enqueue(db, shared, 2, { ...call(seats), replace: { key: 'r' } });
    await queue.enqueue(db, shared, 3, { ...call(seats), throttle: { key: 't', perMs: 60_000 } });
    await queue.enqueue(db, shared, 4, { ...call(seats), uniqueKey: 'w', unique: 'waiting' });
    await queue.enqueue(db, shared, 5, { ...call(seats), uniqueKey: 'u', unique: { forMs: 60_000 } });
  }
  const { jobs } = await queue.list(db, { queue: 'shared' });
  const stored = jobs.map(({ payload, tenantId, seats }) => [payload, tenantId, seats]);
  expect(stored.sort()).toEqual([
    [1, 't2', 2],
    [2, 't2', 2],
    [3, 't1', 1],
    [4, 't1', 1],
    [5, 't1', 1],
  ]);
});
