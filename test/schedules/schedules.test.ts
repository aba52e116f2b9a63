import { text } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSchedule,
  handle,
  InvalidPayloadError,
  MissingMigrationError,
  QueueError,
  schedulesIn,
} from 'drizzle-queue';
import { createQueueTables, queueJobs } from 'drizzle-queue/schema';
import { createControlTables, queueSchedules } from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { nextEvent } from '../worker/next-event.ts';

const database = useTestDatabase();
const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
const { schedules } = queue;
const report = defineJob('report', { payload: z.object({ day: z.string() }), queue: 'reports', priority: 7 });
const plain = defineJob('plain');
const nightly = defineSchedule('nightly', {
  job: report,
  payload: { day: 'all' },
  cron: '0 3 * * *',
  timeZone: 'Europe/Vienna',
  options: { metadata: { tenant: 'acme' } },
});

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_schedules');
});

test('check finds a schedule whose kind no worker handles, once there is a worker', async () => {
  const unserved = async () =>
    (await queue.check(database.db))
      .filter(({ code }) => code === 'kind-unserved')
      .map(({ queue, kind, message }) => `${queue}, ${kind}: ${message}`);
  await schedules.set(database.db, nightly);
  await schedules.set(database.db, defineSchedule('served', { job: plain, every: 60_000 }));
  await schedules.set(
    database.db,
    defineSchedule('paused', { job: report, payload: { day: '' }, every: 60_000 }),
  );
  await schedules.pause(database.db, 'paused');
  expect(await unserved()).toEqual([]);
  await database.client`
    insert into queue_workers (name, queues, kinds) values ('w', '["default", "reports"]', '["plain"]')`;
  const found =
    "reports, report: The schedule 'nightly' is for jobs of the kind 'report' in 'reports', and no worker that serves the queue has a handler for it";
  expect(await unserved()).toEqual([`${found}. It fires only where another worker has one`]);
  await database.client`update queue_schedules set declared_by = 1 where name = 'nightly'`;
  expect(await unserved()).toEqual([found]);
  await database.client`update queue_workers set kinds = '["plain", "report"]'`;
  expect(await unserved()).toEqual([]);
});

const jobs = () => database.db.select().from(queueJobs).orderBy(queueJobs.id);

describe('set', () => {
  test('creates a schedule, and says when it fires next', async () => {
    const before = Date.now();
    const record = await schedules.set(database.db, nightly);
    expect(record).toMatchObject({
      name: 'nightly',
      kind: 'report',
      queue: 'reports',
      payload: { day: 'all' },
      cron: '0 3 * * *',
      every: null,
      timeZone: 'Europe/Vienna',
      catchUp: 'latest',
      overlap: true,
      startsAt: null,
      endsAt: null,
      lastAt: null,
      pausedAt: null,
      declared: false,
    });
    expect(record.nextAt?.getTime()).toBeGreaterThan(before);
    expect(
      record.nextAt?.toLocaleTimeString('en-GB', { timeZone: 'Europe/Vienna', timeStyle: 'medium' }),
    ).toBe('03:00:00');
    expect(await schedules.find(database.db, 'nightly')).toEqual(record);
  });

  test('commits with its transaction, or not at all', async () => {
    await database.db
      .transaction(async (tx) => {
        await schedules.set(tx, nightly);
        expect(await schedules.find(tx, 'nightly')).toBeDefined();
        throw new Error('no');
      })
      .catch(() => undefined);
    expect(await schedules.find(database.db, 'nightly')).toBeUndefined();
  });

  test('of the same timing keeps its place; of another begins anew', async () => {
    await schedules.set(database.db, nightly);
    await database.client`
      update queue_schedules set passed_at = '2020-01-01', next_at = '2020-01-02', last_at = '2020-01-01'`;
    const again = await schedules.set(
      database.db,
      defineSchedule('nightly', {
        job: report,
        payload: { day: 'one' },
        cron: '0 3 * * *',
        timeZone: 'Europe/Vienna',
      }),
    );
    expect(again).toMatchObject({ payload: { day: 'one' }, nextAt: new Date('2020-01-02T00:00Z') });
    const other = await schedules.set(
      database.db,
      defineSchedule('nightly', { job: report, payload: { day: 'one' }, every: 60_000 }),
    );
    expect(other).toMatchObject({ cron: null, every: 60_000, lastAt: new Date('2020-01-01T00:00Z') });
    expect(other.nextAt?.getTime()).toBeGreaterThan(Date.now() - 5_000);
  });

  test('refuses a payload before it sends anything', async () => {
    const slow = z.object({ day: z.string() }).refine(async ({ day }) => day === 'all');
    const job = defineJob('checked', { payload: slow });
    const schedule = defineSchedule('checked', { job, payload: { day: 'one' }, every: 60_000 });
    await database.db.transaction(async (tx) => {
      await expect(schedules.set(tx, schedule)).rejects.toThrow(InvalidPayloadError);
      await schedules.set(tx, nightly);
    });
    expect(await schedules.find(database.db, 'nightly')).toBeDefined();
    await expect(schedules.set(database.db, 'nightly' as never)).rejects.toThrow(
      'schedules.set takes what defineSchedule() returns',
    );
  });

  test('leaves alone what workers declare', async () => {
    await schedules.set(database.db, nightly);
    await database.client`update queue_schedules set declared_by = 7`;
    await expect(schedules.set(database.db, nightly)).rejects.toThrow(
      "schedules.set: 'nightly' is declared by workers",
    );
    expect(await schedules.remove(database.db, 'nightly')).toBe(true);
    expect(await schedules.set(database.db, nightly)).toMatchObject({ declared: false });
  });
});

test('pause and resume say what they have changed', async () => {
  await schedules.set(database.db, nightly);
  expect(await schedules.pause(database.db, 'nightly')).toBe(true);
  expect(await schedules.pause(database.db, 'nightly')).toBe(false);
  expect(await schedules.find(database.db, 'nightly')).toMatchObject({
    nextAt: null,
    pausedAt: expect.any(Date),
  });
  // A change leaves the pause.
  expect((await schedules.set(database.db, nightly)).pausedAt).not.toBeNull();
  expect(await schedules.resume(database.db, 'nightly')).toBe(true);
  expect(await schedules.resume(database.db, 'nightly')).toBe(false);
  expect((await schedules.find(database.db, 'nightly'))?.nextAt).not.toBeNull();
});

test('a name that nobody knows is an error where something was to be done with it', async () => {
  for (const act of ['pause', 'resume', 'runNow'] as const) {
    await expect(schedules[act](database.db, 'nightli')).rejects.toThrow(QueueError);
    await expect(schedules[act](database.db, 'nightli')).rejects.toThrow(
      `schedules.${act}: there is no schedule 'nightli'`,
    );
    await expect(schedules[act](database.db, '')).rejects.toThrow('name must be a string');
  }
  expect(await schedules.remove(database.db, 'nightli')).toBe(false);
  expect(await schedules.find(database.db, 'nightli')).toBeUndefined();
});

describe('runNow', () => {
  test('enqueues a job as a tick does, and leaves the ticks', async () => {
    const before = await schedules.set(database.db, nightly);
    await schedules.pause(database.db, 'nightly');
    const tick = new Date('2026-01-02T03:00Z');
    const { id, duplicate } = await schedules.runNow(database.db, 'nightly', { tick });
    await schedules.runNow(database.db, 'nightly');
    await schedules.resume(database.db, 'nightly');
    const [first, second] = await jobs();
    expect(duplicate).toBe(false);
    expect(first).toMatchObject({
      id,
      kind: 'report',
      queue: 'reports',
      payload: { day: 'all' },
      priority: 7,
      maxAttempts: 20,
      uniqueKey: null,
      metadata: { tenant: 'acme', schedule: 'nightly', tick: tick.toISOString() },
    });
    expect(Math.abs(Date.parse(String(second?.metadata.tick)) - Date.now())).toBeLessThan(60_000);
    expect(await schedules.find(database.db, 'nightly')).toEqual(before);
  });

  test('does not overlap where ticks must not', async () => {
    await schedules.set(database.db, defineSchedule('alone', { job: plain, every: 60_000, overlap: false }));
    const first = await schedules.runNow(database.db, 'alone');
    expect(await schedules.runNow(database.db, 'alone')).toEqual({
      id: first.id,
      duplicate: true,
      outcome: 'duplicate',
    });
    expect(await jobs()).toHaveLength(1);
  });

  test('runs inside around.enqueue, as every enqueue', async () => {
    const around = createQueue({
      schedules: schedulesIn(queueSchedules),
      around: {
        enqueue: async ([job], next) => {
          if (job !== undefined) job.metadata.trace = `of ${JSON.stringify(job.payload)}`;
          await next();
        },
      },
    });
    await around.schedules.set(database.db, nightly);
    await around.schedules.runNow(database.db, 'nightly');
    expect((await jobs())[0]?.metadata).toMatchObject({ trace: 'of {"day":"all"}', schedule: 'nightly' });
  });
});

test.each([
  ['a zone that this runtime does not know', `time_zone = 'Mars/Olympus'`],
  ['an expression of other hands', `cron = 'now and then'`],
])('%s hides no other schedule from a list', async (_, set) => {
  await schedules.set(database.db, nightly);
  await schedules.set(database.db, defineSchedule('other', { job: plain, every: 60_000 }));
  await database.client.unsafe(`update queue_schedules set ${set} where name = 'nightly'`);
  const [found, second, ...more] = (await schedules.list(database.db)).schedules;
  expect([found?.name, second?.name, more]).toEqual(['nightly', 'other', []]);
  if (found === undefined || second === undefined) throw new Error('not found');
  expect(await schedules.find(database.db, 'nightly')).toEqual(found);
  expect(schedules.nextTicks(found, 3)).toEqual([found.nextAt]);
  expect(schedules.nextTicks(second, 3)).toHaveLength(3);
});

test('list pages by name, and filters by kind', async () => {
  for (const name of ['c', 'a', 'b']) {
    await schedules.set(database.db, defineSchedule(name, { job: plain, every: 60_000 }));
  }
  await schedules.set(database.db, nightly);
  const first = await schedules.list(database.db, { limit: 2 });
  expect(first.schedules.map(({ name }) => name)).toEqual(['a', 'b']);
  expect(first.nextCursor).toBe('b');
  const rest = await schedules.list(database.db, { limit: 2, cursor: first.nextCursor });
  expect(rest.schedules.map(({ name }) => name)).toEqual(['c', 'nightly']);
  expect(rest.nextCursor).toBeUndefined();
  expect((await schedules.list(database.db, { job: report })).schedules.map(({ name }) => name)).toEqual([
    'nightly',
  ]);
  await expect(schedules.list(database.db, { limit: 0 })).rejects.toThrow('limit must be a whole number');
});

describe('without the table', () => {
  const bare = useTestDatabase({ max: 2 });
  const line = "`export * from 'drizzle-queue/schema/control'`";

  test('every call names the line and the command', async () => {
    for (const call of [
      () => schedules.set(bare.db, nightly),
      () => schedules.list(bare.db),
      () => schedules.runNow(bare.db, 'nightly'),
      () => createWorker(bare.db, { queue, handlers: [handle(plain, () => undefined)] }).start(),
    ]) {
      const error = await call().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(MissingMigrationError);
      expect(String(error)).toContain(line);
      expect(String(error)).toContain('npx drizzle-kit generate && npx drizzle-kit migrate');
    }
  });

  test('check knows', async () => {
    const [finding] = await queue.check(bare.db);
    expect(finding).toMatchObject({ code: 'tables-missing', severity: 'error' });
    expect(finding?.message).toContain('"queue_schedules" does not exist');
    expect(finding?.fix).toContain(line);
    // A queue without schedules misses nothing.
    expect((await createQueue().check(bare.db)).filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  test('check sees what is missing or wrong in it', async () => {
    await addControlTables(bare);
    expect((await queue.check(bare.db)).filter(({ severity }) => severity !== 'hint')).toEqual([]);
    await bare.client`alter table queue_schedules drop column revision, alter column cron set not null`;
    await bare.client`drop index queue_schedules_next_at_idx`;
    expect((await queue.check(bare.db)).map(({ code }) => code)).toEqual(
      expect.arrayContaining(['column-missing', 'column-differs', 'index-missing']),
    );
  });
});

test('works under other names, and with columns of the app', async () => {
  const other = useOther();
  const tables = createQueueTables({ prefix: 'mail_', columns: { tenantId: text('tenant_id').notNull() } });
  const { queueSchedules: mailSchedules } = createControlTables({ prefix: 'mail_' });
  await other.create();
  const mail = createQueue({ tables, schedules: schedulesIn(mailSchedules) });
  const digest = defineSchedule('digest', { job: plain, every: 1_000, options: { tenantId: 'acme' } });
  await mail.schedules.set(database.db, digest);
  const worker = createWorker(database.db, { queue: mail, handlers: [handle(plain, () => undefined)] });
  onTestFinished(() => worker.stop());
  const completed = nextEvent(worker, 'completed');
  await worker.start();
  expect((await completed)[0].job).toMatchObject({ tenantId: 'acme', metadata: { schedule: 'digest' } });
});

/** The tables under other names, as copies of the ordinary ones. */
function useOther() {
  return {
    async create() {
      for (const name of ['jobs', 'results', 'workers', 'pauses', 'schedules']) {
        await database.client.unsafe(`create table mail_${name} (like queue_${name} including all)`);
      }
      await database.client.unsafe(`
        alter table mail_jobs add column tenant_id text not null;
        alter table mail_results add column tenant_id text not null`);
    },
  };
}
