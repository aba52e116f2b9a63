import { asc, eq, sql } from 'drizzle-orm';
import { integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { begin, commit, twoBackends, untilBlocked } from '../queries/support/locks.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { drivers, type OpenDriver } from './support/drivers.ts';
import { recording } from './support/executors.ts';

const database = useTestDatabase();
const queue = createQueue();

const users = pgTable('users', {
  id: integer('id').primaryKey(),
  email: text('email').notNull(),
  nickName: text('nick_name'),
  trialEndsAt: timestamp('trial_ends_at', { withTimezone: true }).notNull(),
});
const createUsers = `
  create table users (id int primary key, email text not null, nick_name text, trial_ends_at timestamptz not null);
  insert into users values
    (1, 'ann@example.com', 'ann', '2024-01-01T00:00:00Z'),
    (2, 'bob@example.com', null, '2024-02-01T00:00:00Z'),
    (3, 'o''hara "the cat"@example.com', 'x', '2999-01-01T00:00:00Z')`;

const remind = defineJob('remind', { payload: unvalidated<unknown>(), maxAttempts: 3, priority: 4 });

beforeAll(() => database.client.unsafe(createUsers));
beforeEach(() => clearTables(database.client));

interface StoredJob {
  readonly payload: unknown;
  readonly [column: string]: unknown;
}

async function jobs(): Promise<StoredJob[]> {
  const rows = await database.client<{ row: StoredJob }[]>`
    select to_jsonb(j) as row from queue_jobs as j order by id`;
  return rows.map(({ row }) => row);
}

const payloads = async () => (await jobs()).map(({ payload }) => payload);
const allUsers = () => database.db.select({ userId: users.id }).from(users).orderBy(asc(users.id));

describe('one job per row', () => {
  test('with the select’s own keys, and the definition’s settings', async () => {
    const select = database.db
      .select({ userId: users.id, email: users.email, name: users.nickName })
      .from(users)
      .orderBy(asc(users.id));
    const db = recording(database.db);
    expect(await queue.enqueueFrom(db, remind, select)).toEqual({ enqueued: 3, duplicates: 0 });
    expect(db.sent).toHaveLength(1);
    const stored = await jobs();
    expect(stored.map(({ payload }) => payload)).toEqual([
      { userId: 1, email: 'ann@example.com', name: 'ann' },
      { userId: 2, email: 'bob@example.com', name: null },
      { userId: 3, email: 'o\'hara "the cat"@example.com', name: 'x' },
    ]);
    for (const job of stored) {
      expect(job).toMatchObject({
        queue: 'default',
        kind: 'remind',
        priority: 4,
        max_attempts: 3,
        attempt: 0,
        unique_key: null,
        metadata: {},
        errors: [],
      });
      expect(job.run_at).toBe(job.created_at);
    }
  });

  test('none, when the select has none', async () => {
    const none = database.db.select({ id: users.id }).from(users).where(eq(users.id, 0));
    expect(await queue.enqueueFrom(database.db, remind, none)).toEqual({ enqueued: 0, duplicates: 0 });
    const keyed = { uniqueKey: () => sql`'k'` };
    expect(await queue.enqueueFrom(database.db, remind, none, keyed)).toEqual({ enqueued: 0, duplicates: 0 });
  });

  test('all columns of a table, under the names of the Drizzle schema', async () => {
    await queue.enqueueFrom(database.db, remind, database.db.select().from(users).where(eq(users.id, 1)));
    const [payload] = await payloads();
    expect(payload).toEqual({
      id: 1,
      email: 'ann@example.com',
      nickName: 'ann',
      trialEndsAt: expect.stringMatching(/^\d{4}-/),
    });
  });

  test('nested, as the select is', async () => {
    const select = database.db
      .select({
        user: { id: users.id, email: users.email },
        n: sql<number>`${users.id} * 10`.as('n'),
      })
      .from(users)
      .where(eq(users.id, 2));
    await queue.enqueueFrom(database.db, remind, select);
    expect(await payloads()).toEqual([{ user: { id: 2, email: 'bob@example.com' }, n: 20 }]);
  });

  test('of a join, with aliases', async () => {
    const select = database.db
      .select({ id: users.id, others: sql<number>`count(*)::int`.as('others') })
      .from(users)
      .innerJoin(sql`users as other`, sql`other.id <> ${users.id}`)
      .groupBy(users.id)
      .orderBy(asc(users.id));
    await queue.enqueueFrom(database.db, remind, select);
    expect(await payloads()).toEqual([1, 2, 3].map((id) => ({ id, others: 2 })));
  });

  test.each([50, 51, 100, 120])('of %i fields', async (count) => {
    const fields = Object.fromEntries(
      Array.from({ length: count }, (_, n) => [
        `it's field ${n}`,
        sql<number>`${users.id} + ${n}::int`.as(`f${n}`),
      ]),
    );
    await queue.enqueueFrom(
      database.db,
      remind,
      database.db.select(fields).from(users).where(eq(users.id, 1)),
    );
    const expected = Object.fromEntries(Array.from({ length: count }, (_, n) => [`it's field ${n}`, n + 1]));
    expect(await payloads()).toEqual([expected]);
  });

  test('in the order of the select', async () => {
    const select = database.db.select({ id: users.id }).from(users).orderBy(sql`${users.id} desc`);
    await queue.enqueueFrom(database.db, remind, select);
    expect(await payloads()).toEqual([3, 2, 1].map((id) => ({ id })));
  });

  test('for a job without payload the rows only count', async () => {
    await queue.enqueueFrom(database.db, defineJob('tick'), allUsers());
    expect(await payloads()).toEqual([null, null, null]);
  });
});

describe('options', () => {
  test('the same for every job', async () => {
    await queue.enqueueFrom(database.db, remind, allUsers(), {
      delayMs: 90_000,
      priority: 0,
      maxAttempts: 9,
      queue: 'mail',
      metadata: { batch: 'it\'s "7"' },
    });
    for (const job of await jobs()) {
      expect(job).toMatchObject({
        priority: 0,
        max_attempts: 9,
        queue: 'mail',
        metadata: { batch: 'it\'s "7"' },
      });
      expect(Date.parse(String(job.run_at)) - Date.parse(String(job.created_at))).toBe(90_000);
    }
  });

  // Of any precedence: what they are cast to is not what their last operand is cast to.
  test.each([
    ['with keys', true],
    ['without keys', false],
  ])('expressions over the row, %s', async (_, keyed) => {
    const select = database.db
      .select({ userId: users.id, user: { trialEndsAt: users.trialEndsAt } })
      .from(users)
      .orderBy(asc(users.id));
    await queue.enqueueFrom(database.db, remind, select, {
      priority: (row) => sql`${row.userId} * 1.5`,
      runAt: (row) => sql`${row.user.trialEndsAt} - interval '1 day'`,
      ...(keyed && { uniqueKey: (row) => sql`${row.userId} + 100` }),
    });
    const stored = await jobs();
    expect(stored.map(({ priority }) => priority)).toEqual([2, 3, 5]);
    expect(stored.map(({ unique_key }) => unique_key)).toEqual(
      keyed ? ['101', '102', '103'] : [null, null, null],
    );
    expect(stored.map(({ run_at }) => new Date(String(run_at)).toISOString())).toEqual([
      '2023-12-31T00:00:00.000Z',
      '2024-01-31T00:00:00.000Z',
      '2998-12-31T00:00:00.000Z',
    ]);
  });

  test.each([
    ['infinity', 'with keys', true],
    ['infinity', 'without keys', false],
    ['null', 'with keys', true],
    ['null', 'without keys', false],
  ])('a row whose runAt is %s refuses all, %s', async (value, _, keyed) => {
    const refused = queue.enqueueFrom(database.db, remind, allUsers(), {
      runAt: (row) =>
        sql`case when ${row.userId} = 2 then ${sql.raw(value === 'null' ? value : `'${value}'`)}::timestamptz else now() end`,
      ...(keyed && { uniqueKey: (row) => sql`${row.userId}` }),
    });
    await expect(refused).rejects.toMatchObject({ cause: { code: '23502' } });
    expect(await jobs()).toEqual([]);
  });

  test('runAt as a Date', async () => {
    const runAt = new Date('2030-01-02T03:04:05.678Z');
    await queue.enqueueFrom(database.db, remind, allUsers(), { runAt });
    const { jobs: listed } = await queue.list(database.db);
    expect(listed.map((job) => [job.runAt, job.state])).toEqual([1, 2, 3].map(() => [runAt, 'scheduled']));
  });
});

describe('unique keys', () => {
  const byUser = { uniqueKey: (row: { userId: unknown }) => sql`${row.userId}::text` };

  test('rows whose key is taken are left out, and counted', async () => {
    await queue.enqueue(database.db, remind, 'before', { uniqueKey: '2' });
    expect(await queue.enqueueFrom(database.db, remind, allUsers(), byUser)).toEqual({
      enqueued: 2,
      duplicates: 1,
    });
    expect(await queue.enqueueFrom(database.db, remind, allUsers(), byUser)).toEqual({
      enqueued: 0,
      duplicates: 3,
    });
    expect(await payloads()).toEqual(['before', { userId: 1 }, { userId: 3 }]);
  });

  test('a key that repeats inside the select counts once; null is no key', async () => {
    const counted = await queue.enqueueFrom(database.db, remind, allUsers(), {
      uniqueKey: (row) => sql`case when ${row.userId} > 1 then 'same' end`,
    });
    expect(counted).toEqual({ enqueued: 2, duplicates: 1 });
    const none = await queue.enqueueFrom(database.db, remind, allUsers(), { uniqueKey: () => sql`null` });
    expect(none).toEqual({ enqueued: 3, duplicates: 0 });
  });

  test('wait for an open transaction with the key, in either order of the keys', async () => {
    const [one, two] = await twoBackends(database);
    await begin(one);
    await queue.enqueueFrom(one.db, remind, allUsers(), byUser);
    const reversed = database.db.select({ userId: users.id }).from(users).orderBy(sql`${users.id} desc`);
    const second = queue.enqueueFrom(two.db, remind, reversed, byUser);
    await untilBlocked(database, two);
    await commit(one);
    expect(await second).toEqual({ enqueued: 0, duplicates: 3 });
  });

  test('never deadlock with a bulk enqueue of the same keys', async () => {
    const [one, two] = await twoBackends(database);
    const keys = Array.from({ length: 300 }, (_, n) => `${1_000 - n}`);
    const select = database.db
      .select({ n: sql<number>`n`.as('n') })
      .from(sql`generate_series(701, 1000) as n`);
    for (let round = 0; round < 20; round++) {
      await clearTables(database.client);
      const [answers, { enqueued }] = await Promise.all([
        queue.enqueueMany(
          one.db,
          remind,
          keys.map((uniqueKey) => ({ payload: 1, uniqueKey })),
        ),
        queue.enqueueFrom(two.db, remind, select, { uniqueKey: (row) => sql`${row.n}::text` }),
      ]);
      expect(answers.filter(({ duplicate }) => !duplicate).length + enqueued).toBe(300);
    }
  });
});

test('the select sees what the transaction sees, and all of it rolls back with that', async () => {
  const undone = database.db.transaction(async (tx) => {
    await tx.insert(users).values({ id: 4, email: 'new@example.com', trialEndsAt: new Date() });
    const select = tx.select({ userId: users.id }).from(users);
    expect(await queue.enqueueFrom(tx, remind, select)).toEqual({ enqueued: 4, duplicates: 0 });
    throw new Error('undo');
  });
  await expect(undone).rejects.toThrow('undo');
  expect(await jobs()).toEqual([]);
});

test('what is no Drizzle select is refused', async () => {
  const noSelect = { as: () => sql`x` } as unknown as ReturnType<typeof allUsers>;
  await expect(queue.enqueueFrom(database.db, remind, noSelect)).rejects.toThrow(
    /enqueueFrom\('remind'\): the select must be a Drizzle select/,
  );
});

describe.each(Object.entries(drivers))('%s', (_, open) => {
  let driver: OpenDriver;
  const other = pgTable('other_users', { id: integer('id'), name: text('name') });

  beforeAll(async () => {
    driver = await open(database);
    await driver.db.execute(sql`create table other_users (id int, name text)`);
    await driver.db.execute(sql`insert into other_users values (1, 'é'), (2, null)`);
  });
  afterAll(async () => {
    await driver.db.execute(sql`drop table other_users`);
    await driver.close();
  });

  test('enqueues from a select, with keys and without', async () => {
    const { db } = driver;
    const select = database.db.select({ id: other.id, name: other.name }).from(other);
    const options = {
      uniqueKey: (row: { id: unknown }) => sql`${row.id}::text`,
      runAt: new Date(0),
      metadata: { a: 1 },
    };
    expect(await queue.enqueueFrom(db, remind, select, options)).toEqual({ enqueued: 2, duplicates: 0 });
    expect(await queue.enqueueFrom(db, remind, select, options)).toEqual({ enqueued: 0, duplicates: 2 });
    expect(await queue.enqueueFrom(db, remind, select)).toEqual({ enqueued: 2, duplicates: 0 });
    const { jobs: listed } = await queue.list(db, { job: remind });
    expect(listed.map(({ payload, uniqueKey }) => [payload, uniqueKey]).toReversed()).toEqual([
      [{ id: 1, name: 'é' }, '1'],
      [{ id: 2, name: null }, '2'],
      [{ id: 1, name: 'é' }, null],
      [{ id: 2, name: null }, null],
    ]);
  });
});
