import { randomBytes } from 'node:crypto';
import { createQueue, defineJob, drain, handle, unvalidated } from 'drizzle-queue';
import { from, importJobs } from 'drizzle-queue/import';
import type { Sql } from 'postgres';
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { atFaultPoints, type FaultPoint } from '../../src/core/sql/fault-point.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { useRedis, WITHOUT_REDIS } from './redis.ts';
import {
  bullmqOnPostgres,
  bullmqOnRedis,
  fill,
  graphileWorker,
  openBullmq,
  type Place,
  pgBoss,
  work,
} from './systems.ts';

const database = useTestDatabase();
const redis = useRedis();
const anything = defineJob('anything', { payload: unvalidated<unknown>() });
const numbered = defineJob('numbered', { payload: z.object({ n: z.number() }), priority: 1 });

beforeEach(() => clearTables(database.client));

async function rows() {
  return await database.client<
    { kind: string; n: number; unique_key: string | null; waiting_key: string | null; priority: number }[]
  >`select kind, (payload->>'n')::int as n, unique_key, waiting_key, priority from queue_jobs order by 2`;
}

const LARGE = '{"n": 1234567890123456789, "price": 0.10}';

test.each([
  [
    'pg-boss',
    pgBoss,
    (sql: Sql) => sql`update pgboss.job set data = ${LARGE}::text::jsonb, retry_limit = 32766`,
  ],
  [
    'graphile-worker',
    graphileWorker,
    (sql: Sql) =>
      sql`update graphile_worker._private_jobs set payload = ${LARGE}::text::json, max_attempts = 32767`,
  ],
] as const)(
  'of %s: every digit of a payload, and attempts beyond the bound are said',
  async (_, system, change) => {
    const place: Place = { url: database.url, queue: '' };
    await fill(system, place, { failing: [], jobs: [{ n: 1, priority: 0 }] });
    await change(database.client);
    const { source, close } = system.open(place);
    const mapping = { mail: { job: numbered } };
    for (const dryRun of [true, false]) {
      expect(await importJobs(database.db, source, mapping, { dryRun })).toMatchObject({
        imported: 1,
        bounded: 1,
      });
    }
    await close();
    const [row] = await database.client`select payload::text as payload, max_attempts from queue_jobs`;
    expect(row).toEqual({ payload: LARGE, max_attempts: 10_000 });
  },
);

test('of pg-boss: a job with the id of one of another name, which has ended, is taken alone', async () => {
  const place: Place = { url: database.url, queue: '' };
  const others = [1, 2, 3].map((n) => ({ queue: n === 1 ? 'mail' : 'unknown', data: { n } }));
  await fill(pgBoss, place, { failing: [], jobs: [], others });
  await database.client`
    update pgboss.job as o set id = m.id, state = 'completed' from pgboss.job as m
    where m.name = 'mail' and o.name = 'unknown' and o.data ->> 'n' = '2'`;
  const rule = { job: anything, options: () => ({}) };
  const report = await importJobs(database.db, from.pgBoss(), { mail: rule, unknown: rule });
  expect(report).toMatchObject({ imported: 2, left: 0 });
  expect(await database.client`select data -> 'n' as n from pgboss.job`).toEqual([{ n: 2 }]);
});

test('of pg-boss: keys as their policies mean them, and what cannot be carried over is left', async () => {
  const place: Place = { url: database.url, queue: '' };
  const others = [
    { queue: 'only', data: { n: 1 }, send: { singletonKey: 'a' } },
    { queue: 'only', data: { n: 2 } },
    { queue: 'queued', data: { n: 3 }, send: { singletonKey: 'b' } },
    { queue: 'serial', data: { n: 4 }, send: { singletonKey: 'c' } },
    { queue: 'mail', data: { n: 5 }, send: { singletonKey: 'd', priority: 100 } },
    { queue: 'mail', data: { n: 'six' } },
    { queue: 'unknown', data: { n: 7 } },
  ];
  await fill(pgBoss, place, { failing: [], jobs: [], others });
  const job = anything;
  const mapping = { only: { job }, queued: { job }, serial: { job }, mail: { job: numbered } };
  const expected = {
    imported: 4,
    bounded: 0,
    left: 3,
    active: 0,
    names: [
      { name: 'mail', kind: 'numbered', waiting: 1, delayed: 0, retrying: 0, left: 1 },
      { name: 'only', kind: 'anything', waiting: 2, delayed: 0, retrying: 0, left: 0 },
      { name: 'queued', kind: 'anything', waiting: 1, delayed: 0, retrying: 0, left: 0 },
      { name: 'serial', kind: 'anything', waiting: 0, delayed: 0, retrying: 0, left: 1 },
      { name: 'unknown', kind: undefined, waiting: 0, delayed: 0, retrying: 0, left: 1 },
    ],
    leftJobs: [
      { id: expect.any(String), name: 'mail', why: 'invalid', message: expect.stringContaining('numbered') },
      {
        id: expect.any(String),
        name: 'serial',
        why: 'unfit',
        message: expect.stringContaining("'serial c'"),
      },
    ],
  };
  expect(await importJobs(database.db, from.pgBoss(), mapping, { dryRun: true })).toEqual({
    ...expected,
    dryRun: true,
  });
  expect(await importJobs(database.db, from.pgBoss(), mapping)).toEqual({ ...expected, dryRun: false });
  expect(await rows()).toEqual([
    { kind: 'anything', n: 1, unique_key: 'a', waiting_key: null, priority: 5 },
    { kind: 'anything', n: 2, unique_key: 'only', waiting_key: null, priority: 5 },
    { kind: 'anything', n: 3, unique_key: null, waiting_key: 'b', priority: 5 },
    // From 1, with 100 steps to the front.
    { kind: 'numbered', n: 5, unique_key: null, waiting_key: null, priority: 0 },
  ]);
  const rule = { job: anything, options: () => ({}) };
  // As its resolver does to a job that waits for others.
  await database.client`update pgboss.job set blocked = true where name = 'serial'`;
  expect(await importJobs(database.db, from.pgBoss(), { serial: rule })).toMatchObject({
    imported: 0,
    leftJobs: [{ why: 'unfit', message: 'It waits for other jobs of a flow' }],
  });
  await database.client`update pgboss.job set blocked = false`;
  expect(await importJobs(database.db, from.pgBoss(), { serial: rule })).toMatchObject({ imported: 1 });
  const left = await database.client`select name from pgboss.job where state < 'active' order by 1`;
  expect(left.map(({ name }) => name)).toEqual(['mail', 'unknown']);
});

test('of pg-boss: a stately queue, which runs one job of a key, only with a word about it', async () => {
  const place: Place = { url: database.url, queue: '' };
  const others = [{ queue: 'stately', data: { n: 1 }, send: { singletonKey: 'a' } }];
  await fill(pgBoss, place, { failing: [], jobs: [], others });
  expect(await importJobs(database.db, from.pgBoss(), { stately: { job: numbered } })).toMatchObject({
    imported: 0,
    leftJobs: [{ name: 'stately', why: 'unfit', message: expect.stringContaining("'stately a'") }],
  });
  const rule = { job: numbered, options: () => ({}) };
  expect(await importJobs(database.db, from.pgBoss(), { stately: rule })).toMatchObject({ imported: 1 });
  expect(await rows()).toMatchObject([{ n: 1, unique_key: null, waiting_key: 'a' }]);
});

test('of graphile-worker: keys until the first run, named queues only with a word about them', async () => {
  const place: Place = { url: database.url, queue: '' };
  const others = [
    { queue: 'mail', data: { n: 1 }, send: { jobKey: 'a' } },
    { queue: 'mail', data: { n: 2 }, send: { queueName: 'tenant', priority: 3 } },
    { queue: 'mail', data: { n: 3 }, send: { priority: -1, maxAttempts: 3 } },
    // It keeps JSON as a text.
    { queue: 'nul', data: { n: '\0' } },
  ];
  await fill(graphileWorker, place, { failing: [], jobs: [], others });
  expect(await importJobs(database.db, from.graphileWorker(), { mail: { job: numbered } })).toMatchObject({
    imported: 2,
    leftJobs: [{ why: 'unfit', message: expect.stringContaining("'tenant'") }],
  });
  expect(await rows()).toEqual([
    { kind: 'numbered', n: 1, unique_key: null, waiting_key: 'a', priority: 1 },
    { kind: 'numbered', n: 3, unique_key: null, waiting_key: null, priority: 0 },
  ]);
  expect(await importJobs(database.db, from.graphileWorker(), { nul: { job: anything } })).toMatchObject({
    imported: 0,
    leftJobs: [{ why: 'invalid', message: expect.stringContaining('contains a NUL character') }],
  });
  const again = {
    job: numbered,
    options: ({ serial }: { serial?: string | undefined }) => ({ metadata: { serial } }),
  };
  expect(await importJobs(database.db, from.graphileWorker(), { mail: again })).toMatchObject({
    imported: 1,
    left: 1,
  });
});

test('of graphile-worker: a role that may not see its rows is told so', async () => {
  await fill(graphileWorker, { url: database.url, queue: '' }, { failing: [], jobs: [] });
  const role = `looker_${randomBytes(4).toString('hex')}`;
  const { unsafe } = database.client;
  await unsafe.call(
    database.client,
    `create role ${role}; grant usage on schema graphile_worker to ${role};
     grant select, delete, update on all tables in schema graphile_worker to ${role}; grant all on all tables in schema public to ${role}`,
  );
  try {
    await expect(
      database.db.transaction(async (tx) => {
        await tx.execute(`set local role ${role}`);
        await importJobs(tx, from.graphileWorker(), { mail: { job: numbered } });
      }),
    ).rejects.toThrow(/row-level security hides graphile_worker._private_jobs from the role looker_/);
  } finally {
    await unsafe.call(database.client, `drop owned by ${role}; drop role ${role}`);
  }
});

test('of BullMQ on Postgres: a job after which another one is to come, by keepLastIfActive, is left', async () => {
  const place: Place = { url: database.url, queue: `q${randomBytes(4).toString('hex')}` };
  const others = [{ queue: 'mail', data: { n: 1 }, send: { deduplication: { id: 'only' } } }];
  await fill(bullmqOnPostgres, place, { failing: [], jobs: [], others });
  // As an add does while the job runs, which then fails and is to run again.
  await database.client`insert into bullmq.dedup_next values (${place.queue}, 'only', '{}')`;
  const { source } = bullmqOnPostgres.open(place);
  expect(await importJobs(database.db, source, { mail: { job: numbered } })).toMatchObject({
    imported: 0,
    leftJobs: [{ why: 'unfit', message: 'Another job is added when it has ended (keepLastIfActive)' }],
  });
});

const bullmqs = [bullmqOnPostgres, bullmqOnRedis] as const;

describe.each(bullmqs.map((system) => [system.title, system] as const))('of %s', (_, system) => {
  const onRedis = system === bullmqOnRedis;

  test.skipIf(onRedis && WITHOUT_REDIS !== undefined)(
    'ids and deduplication are keys; flows and schedulers are left',
    async () => {
      const place: Place = {
        url: database.url,
        redisUrl: onRedis ? redis.url : undefined,
        queue: `q${randomBytes(4).toString('hex')}`,
      };
      const others = [
        { queue: 'mail', data: { n: 1 }, send: { jobId: 'mine' } },
        { queue: 'mail', data: { n: 2 }, send: { deduplication: { id: 'dedup' } } },
        { queue: 'mail', data: { n: 3 }, send: { deduplication: { id: 'for-a-while', ttl: 3_600_000 } } },
        { queue: 'mail', data: { n: 'four' } },
        { queue: 'unknown', data: { n: 5 } },
      ];
      await fill(system, place, { failing: [], jobs: [], others, flow: true });
      const queue = createQueue();
      await queue.enqueue(database.db, numbered, { n: 0 }, { uniqueKey: 'dedup' });
      const { source, close } = system.open(place);
      const mapping = { mail: { job: numbered } };
      for (const dryRun of [true, false]) {
        const { imported, left, leftJobs } = await importJobs(database.db, source, mapping, { dryRun });
        expect({ imported, left }).toEqual({ imported: 2, left: 6 });
        expect(leftJobs.map(({ message }) => message).sort()).toEqual([
          'A job scheduler makes these: declare a schedule for them',
          'It waits for its children in a flow',
          'Its parent in a flow waits for it',
          expect.stringMatching(/^The job \d+ has its unique key$/),
          expect.stringContaining("The payload of 'numbered' is invalid"),
        ]);
      }
      expect(await rows()).toEqual([
        { kind: 'numbered', n: 0, unique_key: 'dedup', waiting_key: null, priority: 1 },
        { kind: 'numbered', n: 1, unique_key: 'mine', waiting_key: null, priority: 1 },
        { kind: 'numbered', n: 3, unique_key: null, waiting_key: null, priority: 1 },
      ]);
      // The key is free, so the other one can come.
      await drain(database.db, { queue, deadlineMs: 20_000, handlers: [handle(numbered, () => undefined)] });
      expect(await importJobs(database.db, source, { mail: { job: numbered } })).toMatchObject({
        imported: 1,
        left: 5,
      });
      await close();
      const remaining = await system.remaining(place, database.client);
      expect(remaining.map(String).sort()).toEqual(['5', '6', '7', '8', onRedis ? 'four' : 'NaN'].sort());
    },
  );
});

test.skipIf(WITHOUT_REDIS !== undefined)(
  'of BullMQ on Redis: no transaction, and one importer at a time',
  async () => {
    const place: Place = {
      url: database.url,
      redisUrl: redis.url,
      queue: `q${randomBytes(4).toString('hex')}`,
    };
    await fill(bullmqOnRedis, place, {
      failing: [],
      jobs: [
        { n: 1, priority: 0 },
        { n: 2, priority: 0 },
      ],
    });
    const queue = openBullmq(place);
    const mapping = { mail: { job: numbered } };
    await expect(
      database.db.transaction((tx) => importJobs(tx, from.bullmq({ queue }), mapping)),
    ).rejects.toThrow(/instead of a transaction/);
    // Two at once: the second waits for the first, and finds nothing.
    const reports = await Promise.all([
      importJobs(database.db, from.bullmq({ queue }), mapping, { batchSize: 1 }),
      importJobs(database.db, from.bullmq({ queue }), mapping, { batchSize: 1 }),
    ]);
    expect(reports.map(({ imported }) => imported).sort()).toEqual([0, 2]);
    expect((await rows()).map(({ n }) => n)).toEqual([1, 2]);
    await queue.close();
  },
);

test.skipIf(WITHOUT_REDIS !== undefined)(
  'of BullMQ on Redis: what an importer that died has held is given back, or finished, as the next mapping says',
  async () => {
    const place: Place = {
      url: database.url,
      redisUrl: redis.url,
      queue: `q${randomBytes(4).toString('hex')}`,
    };
    const dueAt = Date.now() + 3_600_000;
    const jobs = [
      { n: 1, priority: 0 },
      { n: 2, priority: 3 },
      { n: 3, priority: 0, dueAt },
      { n: 4, priority: 0 },
    ];
    await fill(bullmqOnRedis, place, { failing: [], jobs });
    const queue = openBullmq(place);
    const source = from.bullmq({ queue });
    const { db } = database;
    const mapping = { mail: { job: numbered } };
    const others = { other: { job: anything } };

    // Dies with one batch after the other held.
    for (const times of [1, 1, 1])
      await dyingAt('import: held', times, () => importJobs(db, source, mapping));
    expect((await bullmqOnRedis.remaining(place, database.client)).length).toBeLessThan(4);
    expect(await importJobs(db, source, others)).toMatchObject({ imported: 0, left: 4 });
    expect((await bullmqOnRedis.remaining(place, database.client)).sort()).toEqual([1, 2, 3, 4]);
    const states = await Promise.all(
      [['waiting'], ['prioritized'], ['delayed']].map((of) => queue.getJobs(of)),
    );
    expect(states.map((found) => found.map(({ data }) => data.n).sort())).toEqual([[1, 4], [2], [3]]);

    // Dies when they are here and there: they are no longer BullMQ's, whatever the mapping says.
    await dyingAt('import: written', 1, () => importJobs(db, source, mapping));
    const [parked] = await database.client`select count(*)::int as jobs from queue_jobs where run_at > now()`;
    expect(parked).toEqual({ jobs: 2 });
    expect(await importJobs(db, source, others)).toMatchObject({ imported: 0, left: 2 });
    const [due] = await database.client`select count(*)::int as jobs from queue_jobs where run_at <= now()`;
    expect(due).toEqual({ jobs: 2 });
    expect(await importJobs(db, source, mapping)).toMatchObject({ imported: 2, left: 0 });
    expect((await rows()).map(({ n }) => n)).toEqual([1, 2, 3, 4]);
    await queue.close();
  },
);

test.skipIf(WITHOUT_REDIS !== undefined)(
  'of BullMQ on Redis: workers on both sides run each job once, wherever importers die',
  async () => {
    const place: Place = {
      url: database.url,
      redisUrl: redis.url,
      queue: `q${randomBytes(4).toString('hex')}`,
    };
    const numbers = Array.from({ length: 30 }, (_, index) => index + 1);
    await fill(bullmqOnRedis, place, { failing: [], jobs: numbers.map((n) => ({ n, priority: 0 })) });
    const queue = openBullmq(place);
    const mapping = { mail: { job: numbered } };
    const importAll = () => importJobs(database.db, from.bullmq({ queue }), mapping, { batchSize: 3 });
    const done: number[] = [];
    const workHere = () =>
      drain(database.db, {
        queue: createQueue(),
        deadlineMs: 20_000,
        handlers: [handle(numbered, ({ payload }) => void done.push(payload.n))],
      });
    for (const point of ['import: held', 'import: written', 'import: dropped'] as const) {
      for (const times of [1, 2]) {
        await dyingAt(point, times, importAll);
        await workHere();
      }
    }
    expect(done.length).toBeGreaterThan(3);
    const worker = work(bullmqOnRedis, place);
    await until(() => worker.said.length > 0);
    await worker.stop();
    await importAll();
    await workHere();
    await queue.close();
    expect([...done, ...worker.said.map(Number)].sort((a, b) => a - b)).toEqual(numbers);
  },
);

async function dyingAt(point: FaultPoint, times: number, run: () => Promise<unknown>): Promise<void> {
  let came = 0;
  atFaultPoints(async (at) => {
    if (at === point && ++came === times) throw new Error('dead');
  });
  try {
    await expect(run()).rejects.toThrow('dead');
  } finally {
    atFaultPoints();
  }
}
