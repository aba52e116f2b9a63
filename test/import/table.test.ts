import { eq, sql } from 'drizzle-orm';
import { drizzle as nodePostgres } from 'drizzle-orm/node-postgres';
import { bigserial, integer, jsonb, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import {
  createQueue,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  type JobDefinition,
  QueueError,
  unvalidated,
} from 'drizzle-queue';
import { from, importJobs, type JobTableOptions } from 'drizzle-queue/import';
import pg from 'pg';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const send = defineJob('send', {
  payload: z.object({ order: z.number() }),
  maxAttempts: 7,
  backoff: fixedBackoff(60_000),
});
const plain = defineJob('plain');

const tasks = pgTable('legacy tasks', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  type: text('type').notNull(),
  data: jsonb('data').notNull(),
  status: text('status').notNull().default('pending'),
  dueAt: timestamp('due at', { withTimezone: true }),
  rank: integer('rank').notNull().default(0),
  tries: integer('tries').notNull().default(0),
  most: integer('most'),
  key: text('key'),
});

const options: JobTableOptions = {
  table: tasks,
  columns: {
    id: tasks.id,
    name: tasks.type,
    payload: tasks.data,
    runAt: tasks.dueAt,
    priority: tasks.rank,
    attempts: tasks.tries,
    maxAttempts: tasks.most,
    key: tasks.key,
  },
  where: eq(tasks.status, 'pending'),
  active: eq(tasks.status, 'running'),
  first: 'greater',
};

beforeAll(async () => {
  await database.client`
    create table "legacy tasks" (id bigserial primary key, type text not null, data jsonb not null,
      status text not null default 'pending', "due at" timestamptz, rank int not null default 0,
      tries int not null default 0, most int, key text)`;
});
beforeEach(async () => {
  await clearTables(database.client);
  await database.client`truncate "legacy tasks" restart identity`;
});

async function jobs() {
  return await database.client`
    select kind, payload, priority, attempt, max_attempts, unique_key, run_at > now() as later
    from queue_jobs order by id`;
}

async function pending(): Promise<number[]> {
  const rows = await database.client`select id::int from "legacy tasks" where status = 'pending' order by id`;
  return rows.map(({ id }) => Number(id));
}

test('a payload keeps every digit, unless the mapping makes it; a function of the mapping has the text', async () => {
  const loose = defineJob('loose', { payload: unvalidated<unknown>() });
  await database.client`
    insert into "legacy tasks" (type, data, most) values
      ('as it is', '{"id": 1234567890123456789}', 32767), ('made', '{"id": 1234567890123456789}', 32767)`;
  const report = await importJobs(database.db, from.table(options), {
    'as it is': { job: loose },
    made: { job: loose, payload: (_, { json }) => ({ text: json }), options: () => ({ maxAttempts: 3 }) },
  });
  expect(report).toMatchObject({ imported: 2, bounded: 1 });
  expect(
    await database.client`select payload::text as payload, max_attempts from queue_jobs order by max_attempts`,
  ).toEqual([
    { payload: '{"text": "{\\"id\\": 1234567890123456789}"}', max_attempts: 3 },
    { payload: '{"id": 1234567890123456789}', max_attempts: 10_000 },
  ]);
});

test('a number that only a column of type json holds keeps back no other job', async () => {
  const loose = defineJob('loose', { payload: unvalidated<unknown>() });
  await database.client`alter table "legacy tasks" alter data type json`;
  try {
    await database.client`
      insert into "legacy tasks" (type, data) values
        ('loose', '{"n": 1e-20000}'), ('loose', ${`{"n": 0.${'0'.repeat(20_000)}1}`}::text::json),
        ('loose', ${`{"n": ${'1'.repeat(200_000)}}`}::text::json), ('loose', '{"n": 1}')`;
    const report = await importJobs(database.db, from.table(options), { loose: { job: loose } });
    expect(report).toMatchObject({ imported: 3, left: 1 });
    expect(report.leftJobs).toMatchObject([{ id: '3', why: 'invalid' }]);
    expect((await jobs()).map(({ payload }) => payload)).toEqual([{ n: 0 }, { n: 0 }, { n: 1 }]);
  } finally {
    await database.client`truncate "legacy tasks"`;
    await database.client`alter table "legacy tasks" alter data type jsonb`;
  }
});

test('rows of two kinds may wait by one key', async () => {
  const [orders, stock] = ['orders', 'stock'].map((kind) =>
    defineJob(kind, { payload: unvalidated<unknown>(), queue: 'sync' }),
  );
  await database.client`
    insert into "legacy tasks" (type, data, key) values ('orders', '1', null), ('stock', '2', null), ('stock', '3', null)`;
  const waits = () => ({ uniqueKey: 'tenant-7', unique: 'waiting' }) as const;
  const report = await importJobs(database.db, from.table(options), {
    orders: { job: orders as JobDefinition, options: waits },
    stock: { job: stock as JobDefinition, options: waits },
  });
  expect(report).toMatchObject({ imported: 2, leftJobs: [{ id: '3', why: 'duplicate' }] });
});

test('attempts that have failed there are not taken for workers that died here', async () => {
  await database.client`
    insert into "legacy tasks" (type, data, tries, most) values
      ('send', '{"order": 1}', 2, 5), ('send', '{"order": 2}', 12, 20), ('send', '{"order": 3}', 0, 5)`;
  await importJobs(database.db, from.table(options), { send: { job: send } });
  const rows = await database.client`
    select attempt, jsonb_array_length(errors) as errors, errors -> 0 -> 'attempt' as first,
      errors -> -1 -> 'attempt' as last, errors -> 0 ->> 'message' as message
    from queue_jobs order by attempt`;
  const message = 'Failed before the import';
  expect(rows).toEqual([
    { attempt: 0, errors: 0, first: null, last: null, message: null },
    { attempt: 2, errors: 2, first: 1, last: 2, message },
    { attempt: 12, errors: 10, first: 3, last: 12, message },
  ]);
  const { vitals } = await queue.vitals(database.db);
  expect(vitals.filter(({ code }) => code === 'workers-killed')).toMatchObject([{ severity: 'ok' }]);
});

test('a deadline is counted from the import; a row that is due behind it is left', async () => {
  const timed = defineJob('timed', { payload: unvalidated<unknown>(), deadlineMs: 3_600_000 });
  await database.client`alter table "legacy tasks" add made timestamptz`;
  await database.client`
    insert into "legacy tasks" (type, data, "due at", made) values
      ('timed', '{"n": 1}', now() - interval '1 day', now() - interval '2 days'),
      ('timed', '{"n": 2}', now() + interval '2 hours', now())`;
  const source = from.table({ ...options, columns: { ...options.columns, createdAt: sql`made` } });
  const report = await importJobs(database.db, source, { timed: { job: timed } });
  await database.client`alter table "legacy tasks" drop made`;
  expect(report).toMatchObject({ imported: 1, left: 1 });
  expect(report.leftJobs).toMatchObject([
    { id: '2', why: 'invalid', message: expect.stringContaining('3600000, counts from the import') },
  ]);
  const ran: unknown[] = [];
  const handlers = [handle(timed, async ({ payload }) => void ran.push(payload))];
  await drain(database.db, { queue, handlers, deadlineMs: 20_000, log: false });
  expect(ran).toEqual([{ n: 1 }]);
});

test('rows that cannot be locked are refused in a sentence, and stay', async () => {
  await database.client`insert into "legacy tasks" (type, data) values ('send', '{"order": 1}')`;
  const distinct = { ...options, table: sql`(select distinct * from ${tasks}) as ${tasks}` };
  const refused = importJobs(database.db, from.table(distinct), { send: { job: send } });
  await expect(refused).rejects.toThrow(QueueError);
  await expect(refused).rejects.toThrow(
    'importJobs: the rows of the table cannot be locked (FOR UPDATE is not allowed with DISTINCT clause). ' +
      'Import from a plain table. If the table is distributed by Citus, copy its rows into one that is not',
  );
  expect([await jobs(), await pending()]).toEqual([[], [1]]);
});

test('rows become jobs; those that cannot are left with the reason', async () => {
  await database.client`
    insert into "legacy tasks" (type, data, status, "due at", rank, tries, most, key) values
      ('send', '{"order": 1}', 'pending', null, 0, 0, null, null),
      ('send', '{"order": 2}', 'pending', now() + interval '1 day', 2, 0, 3, 'a'),
      ('send', '{"order": 3}', 'pending', now() - interval '1 day', -2, 2, 3, null),
      ('send', '{"order": "x"}', 'pending', null, 0, 0, null, null),
      ('send', '{"order": 5}', 'pending', null, 0, 3, 3, null),
      ('send', '{"order": 6}', 'running', null, 0, 0, null, null),
      ('send', '{"order": 7}', 'pending', null, 0, 0, null, 'a'),
      ('other', '{}', 'pending', null, 0, 0, null, null),
      ('plain', '{}', 'pending', null, 0, 0, null, null),
      ('plain', '{"some": 1}', 'pending', null, 0, 0, null, null),
      ('send', '{"order": 9}', 'pending', 'infinity', 0, 0, null, null)`;
  const mapping = { send: { job: send }, plain: { job: plain } };
  const counts = { waiting: 1, delayed: 1, retrying: 1 };
  const expected = {
    imported: 4,
    bounded: 0,
    left: 6,
    active: 1,
    names: [
      { name: 'other', kind: undefined, waiting: 0, delayed: 0, retrying: 0, left: 1 },
      { name: 'plain', kind: 'plain', waiting: 1, delayed: 0, retrying: 0, left: 1 },
      { name: 'send', kind: 'send', ...counts, left: 4 },
    ],
    leftJobs: [
      { id: '4', name: 'send', why: 'invalid', message: expect.stringContaining('order') },
      { id: '5', name: 'send', why: 'unfit', message: 'It has no attempts left' },
      { id: '10', name: 'plain', why: 'invalid', message: expect.stringContaining('has no payload') },
      { id: '11', name: 'send', why: 'invalid', message: expect.stringContaining('runAt') },
      { id: '7', name: 'send', why: 'duplicate', message: expect.stringContaining('has its unique key') },
    ],
  };
  const before = await pending();
  expect(await importJobs(database.db, from.table(options), mapping, { dryRun: true })).toEqual({
    ...expected,
    dryRun: true,
  });
  expect([await jobs(), await pending()]).toEqual([[], before]);
  expect(await importJobs(database.db, from.table(options), mapping)).toEqual({ ...expected, dryRun: false });
  expect(await pending()).toEqual([4, 5, 7, 8, 10, 11]);
  const known = { kind: 'send', unique_key: null, later: false };
  expect(await jobs()).toEqual(
    expect.arrayContaining([
      { ...known, payload: { order: 1 }, priority: 5, attempt: 0, max_attempts: 7 },
      {
        ...known,
        payload: { order: 2 },
        priority: 3,
        attempt: 0,
        max_attempts: 3,
        unique_key: 'a',
        later: true,
      },
      { ...known, payload: { order: 3 }, priority: 7, attempt: 2, max_attempts: 3 },
      { ...known, kind: 'plain', payload: null, priority: 5, attempt: 0, max_attempts: 20 },
    ]),
  );
  // The last attempt of three, and no more.
  const attempts: number[] = [];
  await drain(database.db, {
    queue,
    deadlineMs: 20_000,
    handlers: [
      handle(plain, () => undefined),
      handle(send, ({ job }) => {
        attempts.push(job.attempt);
        throw new Error('no');
      }),
    ],
  });
  const { jobs: ended } = await queue.list(database.db, { kind: 'send', state: 'discarded' });
  expect(ended.map(({ payload, attempt }) => [payload, attempt])).toEqual([[{ order: 3 }, 3]]);
  expect(attempts.sort()).toEqual([1, 3]);
});

test('a rule makes the payload and says what differs', async () => {
  await database.client`insert into "legacy tasks" (type, data) values ('send', '{"id": 4}'), ('send', '{"id": 5}')`;
  await importJobs(
    database.db,
    from.table(options),
    {
      send: {
        job: send,
        payload: (data: { id: number }) => ({ order: data.id }),
        options: ({ id }) => ({ queue: 'mail', priority: 9, uniqueKey: `task-${id}`, metadata: { id } }),
      },
    },
    { queue, batchSize: 1 },
  );
  const found =
    await database.client`select queue, priority, payload, unique_key, metadata from queue_jobs order by id`;
  expect(found).toEqual(
    [4, 5].map((order, index) => {
      const id = String(index + 1);
      return { queue: 'mail', priority: 9, payload: { order }, unique_key: `task-${id}`, metadata: { id } };
    }),
  );
});

describe('as one transaction', () => {
  test('a rollback leaves everything as it was, and nobody sees it before the commit', async () => {
    await database.client`insert into "legacy tasks" (type, data) select 'send', '{"order": 1}' from generate_series(1, 25)`;
    const call = (tx: Parameters<typeof importJobs>[0]) =>
      importJobs(tx, from.table(options), { send: { job: send } }, { batchSize: 10 });
    await expect(
      database.db.transaction(async (tx) => {
        expect(await call(tx)).toMatchObject({ imported: 25 });
        expect([await jobs(), await pending()]).toEqual([
          [],
          Array.from({ length: 25 }, (_, index) => index + 1),
        ]);
        throw new Error('changed my mind');
      }),
    ).rejects.toThrow('changed my mind');
    expect((await pending()).length).toBe(25);
    await database.db.transaction(call);
    expect([(await jobs()).length, await pending()]).toEqual([25, []]);
  });

  test('what another transaction has locked is left to it', async () => {
    await database.client`insert into "legacy tasks" (type, data) select 'send', '{"order": 1}' from generate_series(1, 3)`;
    const [other] = await database.connect();
    if (other === undefined) throw new Error('there is no other connection');
    await other.client.begin(async (held) => {
      await held`select from "legacy tasks" where id = 2 for update`;
      expect(await importJobs(database.db, from.table(options), { send: { job: send } })).toMatchObject({
        imported: 2,
      });
    });
    expect(await pending()).toEqual([2]);
  });
});

test('two imports at once take each row once', async () => {
  await database.client`insert into "legacy tasks" (type, data) select 'send', jsonb_build_object('order', n) from generate_series(1, 300) n`;
  const reports = await Promise.all(
    [1, 2, 3].map(() =>
      importJobs(database.db, from.table(options), { send: { job: send } }, { batchSize: 10 }),
    ),
  );
  expect(reports.reduce((sum, { imported }) => sum + imported, 0)).toBe(300);
  const [counted] =
    await database.client`select count(distinct payload)::int as distinct, count(*)::int as all from queue_jobs`;
  expect(counted).toEqual({ distinct: 300, all: 300 });
});

test('a row can be kept and marked; a mark that does not take it away is an error, and nothing is imported', async () => {
  await database.client`insert into "legacy tasks" (type, data) values ('send', '{"order": 1}')`;
  const useless = from.table({ ...options, take: sql`tries = tries` });
  await expect(importJobs(database.db, useless, { send: { job: send } })).rejects.toThrow(
    /would then be imported again/,
  );
  expect([await jobs(), await pending()]).toEqual([[], [1]]);
  const marked = from.table({ ...options, take: sql`status = 'imported'` });
  expect(await importJobs(database.db, marked, { send: { job: send } })).toMatchObject({ imported: 1 });
  expect(await database.client`select status from "legacy tasks"`).toEqual([{ status: 'imported' }]);
});

test('an abort ends it between two batches; what is done stays, and progress is told', async () => {
  await database.client`insert into "legacy tasks" (type, data) select 'send', '{"order": 1}' from generate_series(1, 30)`;
  const controller = new AbortController();
  const told: number[] = [];
  await expect(
    importJobs(
      database.db,
      from.table(options),
      { send: { job: send } },
      {
        batchSize: 10,
        signal: controller.signal,
        onProgress: ({ imported }) => {
          told.push(imported);
          if (imported === 20) controller.abort(new Error('enough'));
        },
      },
    ),
  ).rejects.toThrow('enough');
  expect([told, (await jobs()).length, (await pending()).length]).toEqual([[10, 20], 20, 10]);
});

test.each(['import: held', 'import: written', 'import: dropped'] as const)(
  'a failure after %s changes nothing',
  async (failing) => {
    await database.client`insert into "legacy tasks" (type, data) values ('send', '{"order": 1}')`;
    atFaultPoints(async (point) => {
      if (point === failing) throw new Error('here');
    });
    try {
      await expect(importJobs(database.db, from.table(options), { send: { job: send } })).rejects.toThrow(
        'here',
      );
    } finally {
      atFaultPoints();
    }
    expect([await jobs(), await pending()]).toEqual([[], [1]]);
  },
);

test('what is wrong is said before anything is sent', async () => {
  const source = from.table(options);
  const { db } = database;
  await expect(importJobs(db, source, {})).rejects.toThrow(/mapping is empty/);
  // A caller without TypeScript.
  const wrong = (value: unknown) => value as { job: JobDefinition };
  await expect(importJobs(db, source, { send: wrong({ jobs: send }) })).rejects.toThrow(
    /'send': unknown option 'jobs'; did you mean job/,
  );
  await expect(importJobs(db, source, { send: wrong({}) })).rejects.toThrow(/takes a job definition/);
  await expect(importJobs(db, source, { send: wrong({ job: send, payload: 3 }) })).rejects.toThrow(
    /payload must be a function, got 3/,
  );
  await expect(importJobs(db, source, { send: { job: send } }, { batchSize: 0 })).rejects.toThrow(
    /batchSize must be a whole number/,
  );
  expect(() => from.table({ ...options, name: 'x' })).toThrow(/either columns.name, or one name/);
  expect(() => from.pgBoss({ schema: '' })).toThrow(/from.pgBoss: schema/);
  await expect(importJobs(db, from.pgBoss({ schema: 'nowhere' }), { send: { job: send } })).rejects.toThrow(
    /pg-boss has no table nowhere.job here/,
  );
});

test('attempts that leave none, or are no attempts, leave a row where it is', async () => {
  await database.client`insert into "legacy tasks" (type, data, tries) values
    ('send', '{"order": 1}', 3), ('send', '{"order": 2}', 40000), ('send', '{"order": 3}', -1), ('send', '{"order": 4}', 2)`;
  const mapping = { send: { job: send, options: () => ({ maxAttempts: 3 }) } };
  const { imported, leftJobs } = await importJobs(database.db, from.table(options), mapping);
  expect(imported).toBe(1);
  expect(leftJobs.map(({ id, why, message }) => [id, why, message])).toEqual([
    ['1', 'invalid', 'It has used 3 of 3 attempts'],
    ['2', 'invalid', 'Its attempts must be a whole number from 0 to 10000, got 40000'],
    ['3', 'invalid', 'Its attempts must be a whole number from 0 to 10000, got -1'],
  ]);
  expect(await jobs()).toMatchObject([{ payload: { order: 4 }, attempt: 2, max_attempts: 3 }]);
});

test('through other drivers', async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });
  try {
    const db = nodePostgres({ client: pool });
    await database.client`insert into "legacy tasks" (type, data, "due at", tries, most) values
      ('send', '{"order": 1}', now() + interval '1 hour', 0, null), ('send', '{"order": 2}', null, 1, 2), ('send', '3', null, 0, null)`;
    const expected = { imported: 2, left: 1, names: [{ waiting: 0, delayed: 1, retrying: 1 }] };
    expect(
      await importJobs(db, from.table(options), { send: { job: send } }, { dryRun: true }),
    ).toMatchObject(expected);
    expect(await importJobs(db, from.table(options), { send: { job: send } })).toMatchObject(expected);
    expect(await jobs()).toMatchObject([
      { payload: { order: 1 }, attempt: 0, max_attempts: 7, later: true },
      { payload: { order: 2 }, attempt: 1, max_attempts: 2, later: false },
    ]);
  } finally {
    await pool.end();
  }
});
