import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { declareSchedules } from '../../src/features/schedules/queries/declare-schedules.ts';
import { findDueSchedules } from '../../src/features/schedules/queries/find-due-schedules.ts';
import { findSchedule } from '../../src/features/schedules/queries/find-schedules.ts';
import { type Firing, fireSchedules } from '../../src/features/schedules/queries/fire-schedules.ts';
import { pauseSchedule } from '../../src/features/schedules/queries/pause-schedule.ts';
import { removeSchedule } from '../../src/features/schedules/queries/remove-schedule.ts';
import { setSchedule } from '../../src/features/schedules/queries/set-schedule.ts';
import { tidySchedules } from '../../src/features/schedules/queries/tidy-schedules.ts';
import type { NewSchedule } from '../../src/features/schedules/sql/stored-schedule.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { scheduleTables as tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();
beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers, queue_schedules`;
});

const minutely: NewSchedule = {
  name: 's',
  queue: 'q',
  kind: 'k',
  payload: '{"n":1}',
  settings: '{"priority":3,"maxAttempts":4,"own":{},"metadata":{"a":1}}',
  cron: '* * * * *',
  everyMs: null,
  timeZone: 'UTC',
  startsAtMs: null,
  endsAtMs: null,
  catchUp: 'latest',
  overlap: true,
};

const add = (schedule: Partial<NewSchedule> = {}) =>
  setSchedule(database.db, tables, { schedule: { ...minutely, ...schedule }, channel: undefined });

/** The revision that a schedule has begun with. */
async function born(name: string): Promise<number> {
  const [row] = await database.client<{ born: string }[]>`
    select (extract(epoch from created_at) * 1000000)::int8 as born from queue_schedules where name = ${name}`;
  return Number(row?.born ?? 0);
}

const T1 = Date.parse('2026-01-01T00:00Z');
const T2 = T1 + 60_000;

const firing = (change: Partial<Firing> = {}): Firing => ({
  name: 's',
  revision: 0,
  ticks: [T1],
  passedMs: T1,
  nextMs: T2,
  ...change,
});

/** Revisions are counted from the first. */
async function fire(on: { db: typeof database.db } = database, change: Partial<Firing> = {}) {
  const { name, revision, ...rest } = firing(change);
  return await fireSchedules(
    on.db,
    tables,
    [{ ...rest, name, revision: (await born(name)) + revision }],
    undefined,
  );
}

const ticks = async () =>
  (
    await database.client<{ tick: string }[]>`select metadata ->> 'tick' as tick from queue_jobs order by id`
  ).map(({ tick }) => Date.parse(tick));

async function row(name = 's') {
  const schedule = (await findSchedule(database.db, tables, name))?.schedule;
  return schedule && { ...schedule, revision: schedule.revision - (await born(name)) };
}

test('moves on, and enqueues a job with what the schedule says', async () => {
  await add();
  const [fired] = await fire();
  expect(fired).toEqual({ name: 's', ids: [expect.any(Number)] });
  expect(await row()).toMatchObject({ revision: 1, lastAtMs: T1, passedAtMs: T1, nextAtMs: T2 });
  const [job] = await database.client`select * from queue_jobs`;
  expect(job).toMatchObject({
    queue: 'q',
    kind: 'k',
    payload: { n: 1 },
    priority: 3,
    max_attempts: 4,
    unique_key: null,
    metadata: { a: 1, schedule: 's', tick: '2026-01-01T00:00:00.000Z' },
    worker_id: null,
  });
});

test('fires several ticks in their order, and none where they have passed', async () => {
  await add();
  await fire(database, { ticks: [T1, T2, T2 + 60_000] });
  expect(await ticks()).toEqual([T1, T2, T2 + 60_000]);
  expect(await fire(database, { revision: 1, ticks: [], nextMs: null })).toEqual([{ name: 's', ids: [] }]);
  expect(await row()).toMatchObject({ nextAtMs: null, lastAtMs: T2 + 60_000 });
});

test('changes nothing under another revision, or where there is no such schedule', async () => {
  await add();
  expect(await fire(database, { revision: 1 })).toEqual([]);
  expect(await fire(database, { name: 'other' })).toEqual([]);
  expect(await row()).toMatchObject({ revision: 0, lastAtMs: null });
  expect(await ticks()).toEqual([]);
});

test('a firing of a schedule that was removed is none of the one that was set again', async () => {
  await add();
  const old = (await findSchedule(database.db, tables, 's'))?.schedule.revision ?? -1;
  await removeSchedule(database.db, tables, 's');
  await add({ cron: '0 3 * * *' });
  expect(await fireSchedules(database.db, tables, [firing({ revision: old })], undefined)).toEqual([]);
  expect(await ticks()).toEqual([]);
});

test('a tick that must not overlap passes while a job is live, and fires again when that has ended', async () => {
  await add({ overlap: false });
  expect((await fire())[0]?.ids).toHaveLength(1);
  expect((await fire(database, { revision: 1, ticks: [T2] }))[0]?.ids).toEqual([]);
  expect(await row()).toMatchObject({ revision: 2, lastAtMs: T2 });
  await database.client`delete from queue_jobs`;
  expect((await fire(database, { revision: 2, ticks: [T2 + 1, T2 + 2] }))[0]?.ids).toHaveLength(1);
  expect(await ticks()).toEqual([T2 + 1]);
});

describe('with two connections', () => {
  test('a tick fires once: who comes second passes over the row, and finds another revision later', async () => {
    const [a, b] = await twoBackends(database);
    await add();
    await begin(a);
    expect(await fire(a)).toHaveLength(1);
    expect(await fire(b)).toEqual([]);
    await commit(a);
    expect(await fire(b)).toEqual([]);
    expect(await ticks()).toEqual([T1]);
  });

  test('a firing that is rolled back leaves the tick to another', async () => {
    const [a, b] = await twoBackends(database);
    await add();
    await begin(a);
    await fire(a);
    await rollback(a);
    expect(await ticks()).toEqual([]);
    expect(await fire(b)).toHaveLength(1);
    expect(await ticks()).toEqual([T1]);
  });

  test('a transaction of the app that holds the row delays only that schedule', async () => {
    const [a, b] = await twoBackends(database);
    await add();
    await add({ name: 't' });
    await begin(a);
    await pauseSchedule(a.db, tables, 's');
    const both = await Promise.all(
      ['s', 't'].map(async (name) => firing({ name, revision: await born(name) })),
    );
    expect(await fireSchedules(b.db, tables, both, undefined)).toMatchObject([{ name: 't' }]);
    await commit(a);
    expect(await fire(b)).toEqual([]);
  });

  test('a change, a pause or a removal waits for a firing, and the next firing finds it', async () => {
    const [a, b] = await twoBackends(database);
    await add();
    await begin(a);
    await fire(a);
    const set = setSchedule(b.db, tables, { schedule: { ...minutely, payload: '2' }, channel: undefined });
    await untilBlocked(database, b);
    await commit(a);
    // The firing's place stays: the tick does not come again.
    expect(await set).toMatchObject({
      revision: (await born('s')) + 2,
      passedAtMs: T1,
      nextAtMs: T2,
      payload: '2',
    });
    await begin(a);
    await fire(a, { revision: 2, ticks: [T2] });
    const removed = removeSchedule(b.db, tables, 's');
    await untilBlocked(database, b);
    await commit(a);
    expect(await removed).toBe(true);
    expect(await fire(a, { revision: 3 })).toEqual([]);
    expect(await ticks()).toEqual([T1, T2]);
  });

  test('two that set the same schedule: the second waits, and prevails', async () => {
    const [a, b] = await twoBackends(database);
    await begin(a);
    await setSchedule(a.db, tables, { schedule: minutely, channel: undefined });
    const second = setSchedule(b.db, tables, { schedule: { ...minutely, payload: '2' }, channel: undefined });
    await untilBlocked(database, b);
    await commit(a);
    expect(await second).toMatchObject({ revision: (await born('s')) + 1, payload: '2' });
  });

  test('a job that must not overlap, in an open transaction, costs 100 ms and no tick', async () => {
    const [a, b] = await twoBackends(database);
    await add({ overlap: false });
    await begin(a);
    await a.client`insert into queue_jobs (queue, kind, payload, max_attempts, unique_key)
      values ('q', 'k', '1', 1, 'schedule:s')`;
    const failed = await fire(b).catch((error: unknown) => error);
    expect(sqlStateOf(failed)).toBe('55P03');
    await rollback(a);
    expect(await fire(b)).toHaveLength(1);
  });

  test('one that is being completed in an open transaction is live until then', async () => {
    const [a, b] = await twoBackends(database);
    await add({ overlap: false });
    await fire();
    await begin(a);
    await a.client`delete from queue_jobs`;
    const failed = await fire(b, { revision: 1, ticks: [T2] }).catch((error: unknown) => error);
    expect(sqlStateOf(failed)).toBe('55P03');
    await commit(a);
    expect((await fire(b, { revision: 1, ticks: [T2] }))[0]?.ids).toHaveLength(1);
  });
});

describe('finding', () => {
  const find = (question: Partial<Parameters<typeof findDueSchedules>[2]> = {}) =>
    findDueSchedules(database.db, tables, {
      declared: [],
      kinds: ['k'],
      except: [],
      horizonMs: 7_200_000,
      limit: 10,
      ...question,
    });

  test('gives what comes next first: what was set of these kinds, and what is declared of these names', async () => {
    await add();
    await add({ name: 'other', kind: 'other' });
    await add({ name: 'theirs' });
    await database.client`update queue_schedules set declared_by = 7 where name = 'theirs'`;
    await database.client`update queue_schedules set next_at = now() + interval '1 hour' where name = 's'`;
    expect((await find()).map(({ name }) => name)).toEqual(['s']);
    const both = await find({ declared: ['theirs', 's'] });
    expect(both.map(({ name }) => name)).toEqual(['theirs', 's']);
    expect(both[0]?.dueInMs).toBeLessThanOrEqual(0);
    expect(both[1]?.dueInMs).toBeGreaterThan(3_500_000);
    // A name that is declared here is written once what was set under it has fired, of whatever kind.
    expect((await find({ declared: ['other'], except: ['s'] })).map(({ name }) => name)).toEqual(['other']);
    expect((await find({ declared: ['theirs'], except: ['s'] })).map(({ name }) => name)).toEqual(['theirs']);
  });

  test('leaves out what is paused, and what will never tick again', async () => {
    await add();
    await pauseSchedule(database.db, tables, 's');
    await add({ name: 'ended' });
    await fire(database, { name: 'ended', nextMs: null });
    expect(await find()).toEqual([]);
  });
});

describe('declaring', () => {
  const worker = () => registerWorker(database.db, tables, { name: 'w', queues: [] });
  const declare = async (workerId: number, schedule: Partial<NewSchedule> = {}, unfit: string[] = []) => {
    const schedules = [{ ...minutely, ...schedule }];
    const { all, written } = await declareSchedules(database.db, tables, { workerId, schedules, unfit });
    return { all, written: written.length };
  };

  test('writes once, and then only reads', async () => {
    const id = await worker();
    expect(await declare(id)).toEqual({ all: true, written: 1 });
    expect(await row()).toMatchObject({ declared: true, revision: 0 });
    expect(await declare(id)).toEqual({ all: true, written: 0 });
    expect(await row()).toMatchObject({ revision: 0 });
  });

  test('the youngest worker that lives prevails', async () => {
    const [old, young] = [await worker(), await worker()];
    await declare(old);
    await declare(young, { payload: '2' });
    expect(await row()).toMatchObject({ payload: '2' });
    await declare(old);
    expect(await row()).toMatchObject({ payload: '2' });
    await database.client`delete from queue_workers where id = ${young}`;
    await declare(old);
    expect(await row()).toMatchObject({ payload: '{"n": 1}' });
  });

  test('a younger worker that declares the same takes over, so that an older one leaves it alone', async () => {
    const [old, first, second] = [await worker(), await worker(), await worker()];
    await declare(first, { payload: '2' });
    await declare(second, { payload: '2' });
    await database.client`delete from queue_workers where id = ${first}`;
    await declare(old);
    expect(await row()).toMatchObject({ payload: '2' });
  });

  test('another timing waits while a tick of the old one is due', async () => {
    const [old, young] = [await worker(), await worker()];
    await declare(old);
    expect(await row()).toMatchObject({ cron: '* * * * *' });
    // Due at once, since nobody has computed its first tick.
    expect(await declare(young, { cron: '0 3 * * *' })).toEqual({ all: false, written: 0 });
    expect(await row()).toMatchObject({ cron: '* * * * *' });
    // Another payload alone does not.
    expect(await declare(young, { payload: '2' })).toEqual({ all: true, written: 1 });
    await fire(database, { revision: 1, nextMs: Date.now() + 3_600_000 });
    expect(await declare(await worker(), { cron: '0 3 * * *' })).toEqual({ all: true, written: 1 });
    expect(await row()).toMatchObject({ cron: '0 3 * * *' });
  });

  test('another timing waits for no tick that cannot be fired', async () => {
    const [old, young] = [await worker(), await worker()];
    await declare(old);
    expect(await declare(young, { cron: '0 3 * * *' }, ['another'])).toEqual({ all: false, written: 0 });
    expect(await declare(young, { cron: '0 3 * * *' }, ['s'])).toEqual({ all: true, written: 1 });
    expect(await row()).toMatchObject({ cron: '0 3 * * *' });
  });

  test('a row that was set becomes a declared one', async () => {
    await add();
    expect(await declare(await worker())).toEqual({ all: true, written: 1 });
    expect(await row()).toMatchObject({ declared: true });
  });

  test('two connections that declare at once write one row', async () => {
    const [a, b] = await twoBackends(database);
    const ids = [await worker(), await worker()];
    await Promise.all(
      [a, b].map(({ db }, at) =>
        declareSchedules(db, tables, { workerId: ids[at] ?? 0, schedules: [minutely], unfit: [] }),
      ),
    );
    expect(await row()).toMatchObject({ declared: true });
  });

  test('who has seen no row leaves that alone which another has inserted meanwhile', async () => {
    const [a, b] = await twoBackends(database);
    const [old, young] = [await worker(), await worker()];
    await begin(a);
    await declareSchedules(a.db, tables, {
      workerId: young,
      schedules: [{ ...minutely, payload: '"young"' }],
      unfit: [],
    });
    const late = declareSchedules(b.db, tables, { workerId: old, schedules: [minutely], unfit: [] });
    await untilBlocked(database, b);
    await commit(a);
    // It has not written all that it wanted to, and looks again.
    expect(await late).toEqual({ all: false, written: [] });
    expect(await row()).toMatchObject({ payload: '"young"' });
  });

  test('a row that an open transaction has changed costs 100 ms', async () => {
    const [a, b] = await twoBackends(database);
    const [old, young] = [await worker(), await worker()];
    await declare(old);
    await begin(a);
    await pauseSchedule(a.db, tables, 's');
    const failed = await declareSchedules(b.db, tables, {
      workerId: young,
      schedules: [minutely],
      unfit: [],
    }).catch((error: unknown) => error);
    expect(sqlStateOf(failed)).toBe('55P03');
    await commit(a);
  });
});

test('tidying on Citus, which locks no rows of a reference table first, does so by two statements', async () => {
  for (const name of ['mine', 'fresh', 'gone', 'set']) await add({ name });
  await database.client`update queue_schedules set declared_by = 7 where name <> 'set'`;
  await database.client`update queue_schedules set seen_at = now() - interval '8 days' where name <> 'fresh'`;
  const distributed = inContext(tables, { server: { distributed: true, identified: true } });
  const tidying = { declared: ['mine', 'fresh'], renewMs: 3_600_000, forgetMs: 7 * 86_400_000 };
  await tidySchedules(database.db, distributed, tidying);
  const left = await database.client`
    select name, seen_at > now() - interval '1 minute' as renewed from queue_schedules order by name`;
  expect([...left]).toEqual([
    { name: 'fresh', renewed: true },
    { name: 'mine', renewed: true },
    { name: 'set', renewed: false },
  ]);
});

test('tidying renews what is declared, and removes what nobody has declared for long', async () => {
  for (const name of ['mine', 'fresh', 'gone', 'set']) await add({ name });
  await database.client`update queue_schedules set declared_by = 7 where name <> 'set'`;
  await database.client`update queue_schedules set seen_at = now() - interval '8 days' where name <> 'fresh'`;
  const tidying = { declared: ['mine', 'fresh'], renewMs: 3_600_000, forgetMs: 7 * 86_400_000 };
  const [a, b] = await twoBackends(database);
  await begin(a);
  await pauseSchedule(a.db, tables, 'gone');
  await tidySchedules(b.db, tables, tidying);
  expect(await row('gone')).toBeDefined();
  await commit(a);
  await tidySchedules(b.db, tables, tidying);
  const left = await database.client`
    select name, seen_at > now() - interval '1 minute' as renewed from queue_schedules order by name`;
  expect([...left]).toEqual([
    { name: 'fresh', renewed: true },
    { name: 'mine', renewed: true },
    { name: 'set', renewed: false },
  ]);
});
