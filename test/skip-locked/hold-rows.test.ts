import { desc, eq, isNull, sql } from 'drizzle-orm';
import { queueJobs } from 'drizzle-queue/schema';
import { holdRows, lockRows } from 'drizzle-queue/skip-locked';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { connectTwo } from './support/connect-two.ts';
import { ids } from './support/ids.ts';
import { createTables, fillTables, links, log, orderLines, urls } from './support/tables.ts';

const database = useTestDatabase();
beforeAll(() => createTables(database.client));
beforeEach(() => fillTables(database.client, 20));

test('marks the first row and answers it as it is after the update', async () => {
  const held = await holdRows(database.db, urls, {
    set: { fetchedBy: 'me', depth: sql`${urls.depth} + 10`, headers: { accept: '*/*' } },
    where: isNull(urls.fetchedBy),
    orderBy: urls.id,
  });
  expect(held).toEqual([
    {
      id: 1,
      url: 'https://example.org/1',
      depth: 11,
      foundAt: expect.any(Date),
      fetchedBy: 'me',
      headers: { accept: '*/*' },
    },
  ]);
  expect(await database.db.$count(urls, eq(urls.fetchedBy, 'me'))).toBe(1);
});

test('takes only rows that match, in the order asked for, and answers what is asked for', async () => {
  const held = await holdRows(database.db, urls, {
    set: { fetchedBy: 'me' },
    where: eq(urls.depth, 1),
    orderBy: desc(urls.id),
    limit: 2,
    returning: { id: urls.id, who: sql<string>`upper(${urls.fetchedBy})` },
  });
  expect(held.sort((a, b) => a.id - b.id)).toEqual([
    { id: 16, who: 'ME' },
    { id: 19, who: 'ME' },
  ]);
});

test('finds a key of several columns, in a Postgres schema, under names that need quoting', async () => {
  const held = await holdRows(database.db, orderLines, {
    set: { state: 'packed' },
    orderBy: [orderLines.line, orderLines.order],
    limit: 2,
  });
  expect(held.sort((a, b) => a.order - b.order)).toEqual([
    { order: 0, line: 0, state: 'packed' },
    { order: 1, line: 0, state: 'packed' },
  ]);
  expect(await database.db.$count(orderLines, eq(orderLines.state, 'open'))).toBe(18);
});

test("takes from the queue's own tables", async () => {
  await database.db.insert(queueJobs).values({ queue: 'mail', kind: 'hello', payload: {}, maxAttempts: 1 });
  const held = await holdRows(database.db, queueJobs, {
    set: { priority: 0 },
    where: eq(queueJobs.queue, 'mail'),
  });
  expect(held.map(({ kind, priority }) => [kind, priority])).toEqual([['hello', 0]]);
});

test('says which table has no primary key', () => {
  expect(() => holdRows(database.db, log, { set: { line: '' } })).toThrow(
    /^holdRows: the table 'log' declares no primary key/,
  );
});

describe('with several connections', () => {
  test('every row is held by exactly one', async () => {
    await fillTables(database.client, 400);
    const connections = await database.connect(4);
    const held = await Promise.all(
      connections.map(async ({ db }, index) => {
        const mine: number[] = [];
        for (;;) {
          const rows = await holdRows(db, urls, {
            set: { fetchedBy: String(index) },
            where: isNull(urls.fetchedBy),
            orderBy: urls.foundAt,
            limit: index + 1,
          });
          if (rows.length === 0) return mine;
          mine.push(...rows.map(({ id }) => id));
        }
      }),
    );
    expect(held.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, i) => i + 1));
    expect(held.every((mine) => mine.length > 0)).toBe(true);
  });

  test('skips what another transaction holds, without waiting', async () => {
    const [a, b] = await connectTwo(database);
    const hold = { set: { fetchedBy: 'me' }, where: isNull(urls.fetchedBy), orderBy: urls.id };
    await a.db.transaction(async (tx) => {
      expect(await ids(holdRows(tx, urls, hold))).toEqual([1]);
      expect(await ids(holdRows(b.db, urls, hold))).toEqual([2]);
    });
    expect(await ids(holdRows(b.db, urls, hold))).toEqual([3]);
  });

  test('lets others insert rows that refer to a held row, unless it holds with `update`', async () => {
    const [a, b] = await connectTwo(database);
    await a.db.transaction(async (tx) => {
      await holdRows(tx, urls, { set: { depth: 9 }, orderBy: urls.id });
      await b.db.insert(links).values({ urlId: 1 });
    });
    await a.db.transaction(async (tx) => {
      await holdRows(tx, urls, { set: { depth: 9 }, orderBy: urls.id, strength: 'update' });
      await b.client.unsafe("set lock_timeout = '20ms'");
      await expect(b.db.insert(links).values({ urlId: 1 })).rejects.toMatchObject({
        cause: { code: '55P03' },
      });
    });
  });

  test('with `nowait` fails at once on a row that another transaction has locked', async () => {
    const [a, b] = await connectTwo(database);
    await a.db.transaction(async (tx) => {
      await lockRows(tx, urls, { orderBy: urls.id });
      await expect(
        holdRows(b.db, urls, { set: { depth: 9 }, orderBy: urls.id, wait: 'nowait' }),
      ).rejects.toMatchObject({ cause: { code: '55P03' } });
    });
    expect(await database.db.$count(urls, eq(urls.depth, 9))).toBe(0);
  });
});

describe('as a part of something larger', () => {
  test('a CTE: what is held is noted elsewhere, in one statement', async () => {
    const { db } = database;
    const held = db
      .$with('held')
      .as(
        holdRows(db, urls, { set: { depth: 9 }, orderBy: urls.id, limit: 2, returning: { urlId: urls.id } }),
      );
    const noted = await db
      .with(held)
      .insert(links)
      .select((qb) =>
        qb.select({ id: sql<number>`${held.urlId} + 100`.as('id'), urlId: held.urlId }).from(held),
      )
      .returning();
    expect(noted.sort((a, b) => a.id - b.id)).toEqual([
      { id: 101, urlId: 1 },
      { id: 102, urlId: 2 },
    ]);
  });

  test('a prepared query', async () => {
    const [connection] = await database.connect();
    const query = holdRows(connection?.db ?? database.db, urls, {
      set: { fetchedBy: sql`${sql.placeholder('who')}` },
      where: isNull(urls.fetchedBy),
      orderBy: urls.id,
      limit: sql.placeholder('limit'),
    }).prepare('hold_urls');
    expect(await ids(query.execute({ who: 'me', limit: 2 }))).toEqual([1, 2]);
    expect(await ids(query.execute({ who: 'you', limit: 1 }))).toEqual([3]);
    expect(await database.db.$count(urls, eq(urls.fetchedBy, 'me'))).toBe(2);
  });
});
