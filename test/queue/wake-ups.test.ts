import { sql } from 'drizzle-orm';
import { createQueue, defineJob, type Executor, unvalidated } from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { OTHERS_NOTIFY, wakeChannel } from '../../src/core/sql/wake-channel.ts';
import { addJobs, clearTables, tables } from '../queries/support/jobs.ts';
import { begin, commit, rollback, twoBackends } from '../queries/support/locks.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { drivers } from './support/drivers.ts';
import { recording } from './support/executors.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase();
const channel = wakeChannel(tables);

const job = defineJob('send-receipt', { payload: unvalidated<unknown>(), queue: 'mail' });

/** A queue of its own for each test: a burst is counted per queue object. */
let queue = createQueue();
let stopListening: () => Promise<void>;
const heard: string[] = [];

beforeEach(async () => {
  await clearTables(database.client);
  queue = createQueue();
  heard.length = 0;
  const { unlisten } = await database.client.listen(channel, (name) => heard.push(name));
  stopListening = unlisten;
});

afterEach(() => stopListening());

/** What was notified until now: Postgres delivers in the order of the commits, so a last one says that all have come. */
async function notified(): Promise<string[]> {
  await database.client.notify(channel, 'the last');
  await until(() => heard.at(-1) === 'the last', { intervalMs: 2 });
  return heard.splice(0).slice(0, -1).map(queueOf);
}

/** Without what says whether other enqueues notify as well. */
const queueOf = (payload: string) => payload.replace(OTHERS_NOTIFY, '');

const tomorrow = () => new Date(Date.now() + 86_400_000);

/** Each way to enqueue due jobs, and the queues that it should wake. */
const ways: Record<string, readonly [(db: Executor) => Promise<unknown>, string[]]> = {
  enqueue: [(db) => queue.enqueue(db, job, 1), ['mail']],
  'enqueue with a unique key': [(db) => queue.enqueue(db, job, 1, { uniqueKey: 'a' }), ['mail']],
  'enqueue with a time that has passed': [
    (db) => queue.enqueue(db, job, 1, { runAt: new Date(0) }),
    ['mail'],
  ],
  'enqueueMany, one notification for all': [
    (db) => queue.enqueueMany(db, job, [{ payload: 1 }, { payload: 2 }, { payload: 3 }]),
    ['mail'],
  ],
  'enqueueMany of several queues, one for each that has a due job': [
    (db) =>
      queue.enqueueMany(db, job, [
        { queue: 'b' },
        { queue: 'a' },
        { queue: 'b', delayMs: 60_000 },
        { queue: 'c', delayMs: 60_000 },
        { queue: 'd', runAt: tomorrow() },
        { queue: `it's "e" ü` },
      ]),
    ['a', 'b', `it's "e" ü`],
  ],
  'enqueueMany with unique keys': [
    (db) =>
      queue.enqueueMany(db, job, [
        { queue: 'b', uniqueKey: '2' },
        { queue: 'a', uniqueKey: '1' },
        { queue: 'c', uniqueKey: '3', runAt: tomorrow() },
      ]),
    ['a', 'b'],
  ],
  enqueueFrom: [(db) => queue.enqueueFrom(db, job, numbers(3)), ['mail']],
  'enqueueFrom with unique keys': [
    (db) => queue.enqueueFrom(db, job, numbers(3), { uniqueKey: () => sql`n::text` }),
    ['mail'],
  ],
  'enqueueFrom where only one job is due': [
    (db) => queue.enqueueFrom(db, job, numbers(3), { runAt: () => sql`now() + (n - 1) * interval '1 day'` }),
    ['mail'],
  ],
};

const numbers = (count: number) =>
  database.db.select({ n: sql<number>`n`.as('n') }).from(sql`generate_series(1, ${count}::int) as n`);

describe.each(Object.entries(ways))('%s', (_, [enqueue, queues]) => {
  test('notifies when its transaction commits, and not before', async () => {
    const [one] = await twoBackends(database);
    await begin(one);
    await enqueue(one.db);
    expect(await notified()).toEqual([]);
    await commit(one);
    expect((await notified()).sort()).toEqual(queues);
  });

  test('notifies nobody when it rolls back', async () => {
    const [one] = await twoBackends(database);
    await begin(one);
    await enqueue(one.db);
    await rollback(one);
    expect(await notified()).toEqual([]);
  });

  test('notifies nobody when wake-ups are off', async () => {
    queue = createQueue({ wakeUps: false });
    const db = recording(database.db);
    await enqueue(db);
    expect(await notified()).toEqual([]);
    expect(db.sent.map((statement) => statement.sql).join()).not.toContain('notify');
  });
});

describe('nobody is notified', () => {
  test.each<[string, (db: Executor) => Promise<unknown>]>([
    ['of a job with a delay', (db) => queue.enqueue(db, job, 1, { delayMs: 60_000 })],
    ['of a job with a time to come', (db) => queue.enqueue(db, job, 1, { runAt: tomorrow() })],
    ['of several such jobs', (db) => queue.enqueueMany(db, job, [{ delayMs: 1_000 }, { runAt: tomorrow() }])],
    ['of selected jobs with a delay', (db) => queue.enqueueFrom(db, job, numbers(2), { delayMs: 60_000 })],
    [
      'of selected jobs with a time to come',
      (db) => queue.enqueueFrom(db, job, numbers(2), { runAt: tomorrow() }),
    ],
    ['of no selected jobs', (db) => queue.enqueueFrom(db, job, numbers(0))],
    ['of no redriven jobs', (db) => queue.redrive(db, { all: true })],
  ])('%s', async (_, enqueue) => {
    await enqueue(database.db);
    expect(await notified()).toEqual([]);
  });

  test('of a duplicate', async () => {
    await addJobs(database.client, [{ queue: 'mail', kind: 'send-receipt', uniqueKey: 'a' }]);
    await queue.enqueue(database.db, job, 1, { uniqueKey: 'a' });
    await queue.enqueueMany(database.db, job, [{ uniqueKey: 'a' }, { uniqueKey: 'a' }]);
    await queue.enqueueFrom(database.db, job, numbers(2), { uniqueKey: () => sql`'a'` });
    expect(await notified()).toEqual([]);
  });
});

test('the database’s clock decides whether a time has come, not the process’s', async () => {
  const [row] = await database.client<{ now: number }[]>`
    select extract(epoch from statement_timestamp())::float8 * 1000 as now`;
  const now = Math.floor(Number(row?.now));
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    vi.setSystemTime(now - 3_600_000);
    await queue.enqueue(database.db, job, 1, { runAt: new Date(now) });
    vi.setSystemTime(now + 3_600_000);
    await queue.enqueue(database.db, job, 1, { runAt: new Date(now + 1_800_000), queue: 'later' });
  } finally {
    vi.useRealTimers();
  }
  expect(await notified()).toEqual(['mail']);
});

test('redrive notifies each queue to which a job comes back, once', async () => {
  await addJobs(database.client, [
    { queue: 'q', kind: 'send-receipt' },
    { queue: 'other', kind: 'send-receipt' },
  ]);
  const [first] = await endJob(database.db, { state: 'discarded' });
  await endJob(database.db, { queue: 'other', state: 'discarded' });
  expect(await queue.redrive(database.db, { all: true })).toEqual({ redriven: 2, duplicates: 0 });
  expect((await notified()).sort()).toEqual(['other', 'q']);
  await endJob(database.db, { state: 'discarded' });
  expect(await queue.redrive(database.db, Number(first))).toEqual({ redriven: 1, duplicates: 0 });
  expect(await notified()).toEqual(['q']);
});

describe('at most about 250 a second', () => {
  test('a burst of enqueues notifies five times, and then once in 4 ms', async () => {
    const start = performance.now();
    for (let n = 0; n < 300; n++) await queue.enqueue(database.db, job, n);
    const elapsedMs = performance.now() - start;
    const count = (await notified()).length;
    expect(count).toBeGreaterThanOrEqual(5);
    expect(count).toBeLessThanOrEqual(5 + Math.ceil(elapsedMs / 4));
  });

  test.each<[string, (key: string) => object]>([
    ['without keys', () => ({})],
    ['with unique keys', (uniqueKey) => ({ uniqueKey })],
    ['that replace each other', (key) => ({ replace: { key } })],
    ['with keys until they are claimed', (uniqueKey) => ({ uniqueKey, unique: 'waiting' })],
  ])('where more jobs come, %s, it notifies once in 50 ms', async (_, options) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    let keys = 0;
    const enqueue = async (count: number) => {
      const entries = Array.from({ length: count }, () => ({ payload: 1, ...options(String(keys++)) }));
      await queue.enqueueMany(database.db, job, entries);
    };
    await enqueue(100);
    vi.advanceTimersByTime(200);
    await enqueue(100);
    for (let n = 0; n < 5; n++) await enqueue(1);
    await notified();
    vi.advanceTimersByTime(40);
    await enqueue(1);
    expect(await notified()).toEqual([]);
    vi.advanceTimersByTime(20);
    await enqueue(1);
    expect(await notified()).toEqual(['mail']);
  });

  test('an enqueue whose transaction commits late is notified at its commit, whatever came in between', async () => {
    const [one] = await twoBackends(database);
    await begin(one);
    await queue.enqueue(one.db, job, 'late');
    for (let n = 0; n < 50; n++) await queue.enqueue(database.db, job, n);
    await notified();
    await commit(one);
    expect(await notified()).toEqual(['mail']);
  });

  test('jobs that are scheduled, and duplicates, leave the burst to others', async () => {
    await queue.enqueue(database.db, job, 1, { uniqueKey: 'a' });
    for (let n = 0; n < 50; n++) {
      await queue.enqueue(database.db, job, n, { runAt: tomorrow() });
      await queue.enqueue(database.db, job, n, { delayMs: 60_000 });
      await queue.enqueue(database.db, job, n, { uniqueKey: 'a' });
    }
    await notified();
    await queue.enqueue(database.db, job, 1);
    expect(await notified()).toEqual(['mail']);
  });

  test('a transaction with many enqueues asks once, and leaves the burst to others', async () => {
    await database.db.transaction(async (tx) => {
      const db = Object.assign(recording(tx), { rollback: () => tx.rollback() });
      for (let n = 0; n < 20; n++) await queue.enqueue(db, job, n);
      expect(db.sent.filter(({ sql }) => sql.includes('pg_notify'))).toHaveLength(1);
      // A savepoint's own enqueue asks again: the first might have been in one that was rolled back.
      await tx.transaction((savepoint) => queue.enqueue(savepoint, job, 1));
    });
    expect(await notified()).toEqual(['mail']);
  });

  test('a savepoint that is rolled back takes its notification back, and the next one notifies', async () => {
    await database.db.transaction(async (tx) => {
      const savepoint = tx.transaction(async (savepoint) => {
        await queue.enqueue(savepoint, job, 1);
        throw new Error('not this one');
      });
      await expect(savepoint).rejects.toThrow('not this one');
      await queue.enqueue(tx, job, 2);
    });
    expect(await notified()).toEqual(['mail']);
  });
});

test('a queue over other tables notifies on a channel of its own', async () => {
  const others = createQueueTables({ prefix: 'other_' });
  await database.client`create table other_jobs (like queue_jobs including all)`;
  const there: string[] = [];
  const { unlisten } = await database.client.listen(wakeChannel(others), (name) => there.push(name));
  await createQueue({ tables: others }).enqueue(database.db, job, 1);
  await until(() => there.length > 0, { intervalMs: 2 });
  expect(there.map(queueOf)).toEqual(['mail']);
  expect(await notified()).toEqual([]);
  await unlisten();
});

describe.each(Object.entries(drivers))('with %s', (_, open) => {
  test('answers are right with and without a notification', async () => {
    const { db, close } = await open(database);
    const several = () =>
      queue.enqueueMany(db, job, [{ payload: 1 }, { payload: 2, queue: 'b' }, { payload: 3 }]);
    const alike = (second: { runAt?: Date }) =>
      queue.enqueueMany(db, job, [{ payload: 4 }, { payload: 5, ...second }, { payload: 6 }]);
    for (let n = 0; n < 10; n++) {
      const { id } = await queue.enqueue(db, job, n);
      expect(await queue.find(db, job, id)).toMatchObject({ payload: n });
      const records = await Promise.all((await several()).map(({ id }) => queue.find(db, job, id)));
      expect(records.map((record) => record?.payload)).toEqual([1, 2, 3]);
      const ids = [...(await alike({})), ...(await alike({ runAt: new Date(0) }))].map(({ id }) => id);
      const found = await Promise.all(ids.map((id) => queue.find(db, job, id)));
      expect(found.map((record) => record?.payload)).toEqual([4, 5, 6, 4, 5, 6]);
      expect(await queue.enqueueFrom(db, job, numbers(0))).toEqual({ enqueued: 0, duplicates: 0 });
    }
    await close();
  });
});

test('PGlite notifies as well', async () => {
  const { drizzle } = await import('drizzle-orm/pglite');
  const { openPglite } = await import('../support/pglite.ts');
  const client = await openPglite();
  const there: string[] = [];
  await client.listen(channel, (name) => there.push(name));
  const db = drizzle({ client });
  await queue.enqueue(db, job, 1, { delayMs: 60_000 });
  await queue.enqueueMany(db, job, [{ queue: 'a' }, { queue: 'b' }]);
  await until(() => there.length >= 2, { intervalMs: 2 });
  expect(there.map(queueOf).sort()).toEqual(['a', 'b']);
  await client.close();
});
