import { asc, desc, eq, sql } from 'drizzle-orm';
import { queueJobs } from 'drizzle-queue/schema';
import { lockRows, popRows } from 'drizzle-queue/skip-locked';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { connectTwo } from './support/connect-two.ts';
import { ids } from './support/ids.ts';
import { archivedUrls, createTables, fillTables, links, log, orderLines, urls } from './support/tables.ts';

const database = useTestDatabase();
beforeAll(() => createTables(database.client));
beforeEach(() => fillTables(database.client, 20));

test('deletes the first row and answers it, decoded by its columns', async () => {
  const popped = await popRows(database.db, urls, { orderBy: urls.id });
  expect(popped).toEqual([
    {
      id: 1,
      url: 'https://example.org/1',
      depth: 1,
      foundAt: expect.any(Date),
      fetchedBy: null,
      headers: {},
    },
  ]);
  expect(await database.db.$count(urls)).toBe(19);
  expect(await database.db.$count(urls, eq(urls.id, 1))).toBe(0);
});

test('takes only rows that match, in the order asked for, and answers what is asked for', async () => {
  const popped = await popRows(database.db, urls, {
    where: sql`${urls.depth} = 2`,
    orderBy: [desc(urls.depth), asc(urls.id)],
    limit: 3,
    returning: { number: urls.id, shout: sql<string>`upper(${urls.url})` },
  });
  expect(popped.sort((a, b) => a.number - b.number)).toEqual([
    { number: 2, shout: 'HTTPS://EXAMPLE.ORG/2' },
    { number: 5, shout: 'HTTPS://EXAMPLE.ORG/5' },
    { number: 8, shout: 'HTTPS://EXAMPLE.ORG/8' },
  ]);
});

test('answers nothing when nothing matches', async () => {
  expect(await popRows(database.db, urls, { where: eq(urls.depth, 9) })).toEqual([]);
  expect(await database.db.$count(urls)).toBe(20);
});

test('finds a key of several columns, in a Postgres schema, under names that need quoting', async () => {
  const popped = await popRows(database.db, orderLines, {
    orderBy: [desc(orderLines.order), orderLines.line],
    limit: 2,
  });
  expect(popped.sort((a, b) => a.line - b.line)).toEqual([
    { order: 1, line: 0, state: 'open' },
    { order: 1, line: 1, state: 'open' },
  ]);
  expect(await database.db.$count(orderLines)).toBe(18);
});

test("takes from the queue's own tables", async () => {
  await database.db.insert(queueJobs).values({ queue: 'mail', kind: 'hello', payload: {}, maxAttempts: 1 });
  const popped = await popRows(database.db, queueJobs, { where: eq(queueJobs.queue, 'mail') });
  expect(popped.map(({ kind }) => kind)).toEqual(['hello']);
});

test('says which table has no primary key, and what to do about it', () => {
  expect(() => popRows(database.db, log)).toThrow(
    /^popRows: the table 'log' declares no primary key.*add \.primaryKey\(\)/,
  );
});

describe('with several connections', () => {
  test('every row is answered exactly once', async () => {
    await fillTables(database.client, 400);
    const connections = await database.connect(4);
    const popped = await Promise.all(
      connections.map(async ({ db }, index) => {
        const ids: number[] = [];
        for (;;) {
          const rows = await popRows(db, urls, { orderBy: urls.id, limit: index + 1 });
          if (rows.length === 0) return ids;
          ids.push(...rows.map(({ id }) => id));
        }
      }),
    );
    expect(popped.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, i) => i + 1));
    // Otherwise nobody competed.
    expect(popped.every((ids) => ids.length > 0)).toBe(true);
  });

  test('every row with a key of several columns is answered exactly once', async () => {
    await fillTables(database.client, 300);
    const connections = await database.connect(3);
    const popped = await Promise.all(
      connections.map(async ({ db }) => {
        const keys: string[] = [];
        for (;;) {
          const rows = await popRows(db, orderLines, {
            orderBy: [orderLines.order, orderLines.line],
            limit: 4,
          });
          if (rows.length === 0) return keys;
          keys.push(...rows.map(({ order, line }) => `${order}/${line}`));
        }
      }),
    );
    expect(popped.flat()).toHaveLength(300);
    expect(new Set(popped.flat()).size).toBe(300);
    expect(popped.every((keys) => keys.length > 0)).toBe(true);
  });

  test('skips what another transaction has popped, without waiting, and gets it when that rolls back', async () => {
    const [a, b] = await connectTwo(database);
    const rollback = new Error('rollback');
    await expect(
      a.db.transaction(async (tx) => {
        expect(await ids(popRows(tx, urls, { orderBy: urls.id }))).toEqual([1]);
        expect(await ids(popRows(b.db, urls, { orderBy: urls.id }))).toEqual([2]);
        throw rollback;
      }),
    ).rejects.toThrow(rollback);
    expect(await ids(popRows(b.db, urls, { orderBy: urls.id }))).toEqual([1]);
  });

  test('with `nowait` fails at once on a row that another transaction has locked', async () => {
    const [a, b] = await connectTwo(database);
    await a.db.transaction(async (tx) => {
      await lockRows(tx, urls, { orderBy: urls.id });
      await expect(popRows(b.db, urls, { orderBy: urls.id, wait: 'nowait' })).rejects.toMatchObject({
        cause: { code: '55P03' },
      });
    });
    expect(await database.db.$count(urls)).toBe(20);
  });

  test('skips a row that an open transaction has just referred to by a foreign key', async () => {
    const [a, b] = await connectTwo(database);
    await a.db.transaction(async (tx) => {
      await tx.insert(links).values({ urlId: 1 });
      expect(await ids(popRows(b.db, urls, { orderBy: urls.id }))).toEqual([2]);
    });
  });
});

describe('as a part of something larger', () => {
  test('a CTE: what is popped goes into another table, in one statement', async () => {
    const { db } = database;
    const popped = db.$with('popped').as(popRows(db, urls, { orderBy: urls.id, limit: 5 }));
    await db
      .with(popped)
      .insert(archivedUrls)
      .select((qb) => qb.select().from(popped));
    expect(await db.$count(urls)).toBe(15);
    const archived = await db.select({ id: archivedUrls.id }).from(archivedUrls).orderBy(archivedUrls.id);
    expect(archived.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5]);
  });

  test('a CTE that is referred to by names of its own', async () => {
    const { db } = database;
    const popped = db
      .$with('popped')
      .as(popRows(db, urls, { limit: 5, returning: { deep: sql<number>`${urls.depth} * 100`.as('deep') } }));
    const [row] = await db
      .with(popped)
      .select({ most: sql<number>`max(${popped.deep})` })
      .from(popped);
    expect(row).toEqual({ most: 200 });
  });

  test('a prepared query, with a placeholder for the limit', async () => {
    const [connection] = await database.connect();
    const query = popRows(connection?.db ?? database.db, urls, {
      where: sql`${urls.depth} = ${sql.placeholder('depth')}`,
      orderBy: urls.id,
      limit: sql.placeholder('limit'),
      returning: { id: urls.id },
    }).prepare('pop_urls');
    expect(await ids(query.execute({ depth: 1, limit: 2 }))).toEqual([1, 4]);
    expect(await ids(query.execute({ depth: 0, limit: 1 }))).toEqual([3]);
  });

  test.each([null, 0, -1])(
    'a prepared query whose placeholder for the limit is %j takes no row',
    async (limit) => {
      const [connection] = await database.connect();
      const query = popRows(connection?.db ?? database.db, urls, { limit: sql.placeholder('limit') }).prepare(
        'pop_none',
      );
      const taken = query.execute({ limit });
      if (limit === 0) expect(await taken).toEqual([]);
      else await expect(taken).rejects.toMatchObject({ cause: { code: '2201W' } });
      expect(await database.db.$count(urls)).toBe(20);
    },
  );

  test('nothing is sent before it is awaited', async () => {
    const query = popRows(database.db, urls);
    expect(query.toSQL().sql).toMatch(/^delete from "urls" where .* for update skip locked/);
    expect(await database.db.$count(urls)).toBe(20);
    await query;
    expect(await database.db.$count(urls)).toBe(19);
  });
});
