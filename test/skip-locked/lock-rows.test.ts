import { and, desc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { Cache } from 'drizzle-orm/cache/core';
import { withReplicas } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import { queueJobs } from 'drizzle-queue/schema';
import { lockRows, popRows } from 'drizzle-queue/skip-locked';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { connectTwo } from './support/connect-two.ts';
import { ids } from './support/ids.ts';
import { createTables, fillTables, links, log, orderLines, urls } from './support/tables.ts';

const database = useTestDatabase();
beforeAll(() => createTables(database.client));
beforeEach(() => fillTables(database.client, 20));

test('answers the first rows in order, decoded by their columns', async () => {
  const locked = await lockRows(database.db, urls, {
    where: eq(urls.depth, 1),
    orderBy: desc(urls.id),
    limit: 3,
  });
  expect(locked.map(({ id }) => id)).toEqual([19, 16, 13]);
  expect(locked[0]).toEqual({
    id: 19,
    url: 'https://example.org/19',
    depth: 1,
    foundAt: expect.any(Date),
    fetchedBy: null,
    headers: {},
  });
});

test('answers one column under two names', async () => {
  const returning = { a: urls.id, b: urls.id, found: urls.foundAt, again: urls.foundAt };
  const one = { a: 1, b: 1, found: expect.any(Date), again: expect.any(Date) };
  expect(await lockRows(database.db, urls, { orderBy: urls.id, limit: 1, returning })).toEqual([one]);
  const popped = database.db
    .$with('popped')
    .as(popRows(database.db, urls, { orderBy: urls.id, limit: 1, returning }));
  expect(await database.db.with(popped).select().from(popped)).toEqual([one]);
});

test('answers what is asked for, expressions with and without a name included', async () => {
  const locked = await lockRows(database.db, urls, {
    orderBy: urls.id,
    returning: {
      number: urls.id,
      same: urls.foundAt,
      deep: sql<number>`${urls.depth} * 100`,
      shout: sql<string>`upper(${urls.url})`.as('SHOUT'),
    },
  });
  expect(locked).toEqual([{ number: 1, same: expect.any(Date), deep: 100, shout: 'HTTPS://EXAMPLE.ORG/1' }]);
});

test('needs no primary key, and knows Postgres schemas and quoted names', async () => {
  expect(await lockRows(database.db, log, { orderBy: log.line })).toEqual([{ line: 'line 1' }]);
  expect(await lockRows(database.db, orderLines, { orderBy: [orderLines.order, orderLines.line] })).toEqual([
    { order: 0, line: 0, state: 'open' },
  ]);
  expect(await lockRows(database.db, queueJobs)).toEqual([]);
});

describe('with several connections', () => {
  test('a row is locked for one transaction at a time, and free when that ends', async () => {
    const [a, b] = await connectTwo(database);
    const first = { orderBy: urls.id, limit: 2 };
    await a.db.transaction(async (tx) => {
      expect(await ids(lockRows(tx, urls, first))).toEqual([1, 2]);
      await b.db.transaction(async (other) => {
        expect(await ids(lockRows(other, urls, first))).toEqual([3, 4]);
      });
    });
    expect(await ids(lockRows(b.db, urls, first))).toEqual([1, 2]);
  });

  test('work under the lock: every row is done exactly once, in transactions that stay open while it is done', async () => {
    await fillTables(database.client, 200);
    const connections = await database.connect(4);
    const done = await Promise.all(
      connections.map(async ({ db }) => {
        const mine: number[] = [];
        for (;;) {
          const locked = await db.transaction(async (tx) => {
            const rows = await lockRows(tx, urls, {
              where: isNull(urls.fetchedBy),
              orderBy: urls.id,
              limit: 3,
              strength: 'no key update',
            });
            for (const { id } of rows) await tx.update(urls).set({ fetchedBy: 'me' }).where(eq(urls.id, id));
            return rows;
          });
          if (locked.length === 0) return mine;
          mine.push(...locked.map(({ id }) => id));
        }
      }),
    );
    expect(done.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
    expect(done.every((mine) => mine.length > 0)).toBe(true);
  });

  // What each strength keeps others from, as Postgres documents it in "Row-Level Locks".
  test.each([
    { strength: 'update', shares: false, letsRefer: false, letsUpdate: false },
    { strength: 'no key update', shares: false, letsRefer: true, letsUpdate: false },
    { strength: 'share', shares: true, letsRefer: true, letsUpdate: false },
    { strength: 'key share', shares: true, letsRefer: true, letsUpdate: true },
  ] as const)(
    '`$strength` is as strong as it should be',
    async ({ strength, shares, letsRefer, letsUpdate }) => {
      const [a, b] = await connectTwo(database);
      await b.client.unsafe("set lock_timeout = '20ms'");
      await a.db.transaction(async (tx) => {
        await lockRows(tx, urls, { orderBy: urls.id, strength });
        expect(await ids(lockRows(b.db, urls, { orderBy: urls.id, strength }))).toEqual([shares ? 1 : 2]);
        const refer = b.db.insert(links).values({ urlId: 1 }).returning();
        const update = b.db.update(urls).set({ depth: 9 }).where(eq(urls.id, 1)).returning();
        for (const [query, may] of [
          [refer, letsRefer],
          [update, letsUpdate],
        ] as const) {
          if (may) expect(await query).toHaveLength(1);
          else await expect(query).rejects.toMatchObject({ cause: { code: '55P03' } });
        }
      });
    },
  );

  test('with `nowait` fails at once on a row that another transaction has locked', async () => {
    const [a, b] = await connectTwo(database);
    await a.db.transaction(async (tx) => {
      await popRows(tx, urls, { orderBy: urls.id });
      await expect(lockRows(b.db, urls, { orderBy: urls.id, wait: 'nowait' })).rejects.toMatchObject({
        cause: { code: '55P03' },
      });
    });
  });
});

describe('as a part of a statement of your own', () => {
  test('a CTE that is updated from', async () => {
    const { db } = database;
    const next = db
      .$with('next')
      .as(lockRows(db, urls, { orderBy: urls.id, limit: 3, returning: { id: urls.id } }));
    const updated = db
      .with(next)
      .update(urls)
      .set({ fetchedBy: 'me' })
      .from(next)
      .where(eq(urls.id, next.id))
      .returning({ id: urls.id });
    expect(await ids(updated)).toEqual([1, 2, 3]);
  });

  test('a CTE with a key of several columns that is deleted by', async () => {
    const { db } = database;
    const next = db.$with('next').as(
      lockRows(db, orderLines, {
        orderBy: [orderLines.order, orderLines.line],
        limit: 3,
        returning: { order: orderLines.order, line: orderLines.line },
      }),
    );
    const match = and(eq(orderLines.order, next.order), eq(orderLines.line, next.line));
    const deleted = await db
      .with(next)
      .delete(orderLines)
      .where(sql`exists (select 1 from ${next} where ${match})`)
      .returning();
    expect(deleted.map(({ line }) => line).sort()).toEqual([0, 1, 2]);
  });

  test('a subselect', async () => {
    const { db } = database;
    const first = lockRows(db, urls, { orderBy: urls.id, limit: 3, returning: { id: urls.id } });
    expect(await ids(db.delete(urls).where(inArray(urls.id, first)).returning())).toEqual([1, 2, 3]);
  });

  test('a prepared query', async () => {
    const [connection] = await database.connect();
    const query = lockRows(connection?.db ?? database.db, urls, {
      orderBy: urls.id,
      limit: sql.placeholder('limit'),
    }).prepare('lock_urls');
    expect(await ids(query.execute({ limit: 2 }))).toEqual([1, 2]);
  });
});

/** Answers every select that it has seen before, for ever. */
class EverlastingCache extends Cache {
  readonly #answers = new Map<string, unknown[]>();
  strategy() {
    return 'all' as const;
  }
  async get(key: string) {
    return this.#answers.get(key);
  }
  async put(key: string, answer: unknown) {
    if (Array.isArray(answer)) this.#answers.set(key, answer);
  }
  async onMutate() {}
}

test("is never answered from drizzle-orm's cache", async () => {
  const db = drizzle({ client: database.client, cache: new EverlastingCache() });
  await db.select().from(urls).where(eq(urls.id, 1));
  const first = { orderBy: urls.id };
  expect(await ids(lockRows(db, urls, first))).toEqual([1]);
  await database.client`delete from urls where id = 1`;
  // That the cache would have answered.
  expect(await ids(db.select().from(urls).where(eq(urls.id, 1)))).toEqual([1]);
  expect(await ids(lockRows(db, urls, first))).toEqual([2]);
});

test('works in a transaction of a database with replicas, which locks on the primary', async () => {
  const replica = drizzle({ client: database.client });
  replica.with = () => {
    throw new Error('a replica was asked');
  };
  const db = withReplicas(database.db, [replica]);
  await db.transaction(async (tx) => {
    expect(await ids(lockRows(tx, urls, { orderBy: urls.id }))).toEqual([1]);
  });
  // Outside, a replica is asked, with all that was asked for; what writes goes to the primary.
  const twice = withReplicas(database.db, [database.db]);
  expect(await lockRows(twice, urls, { orderBy: urls.id, returning: { id: urls.id } })).toEqual([{ id: 1 }]);
  expect(await ids(popRows(db, urls, { orderBy: urls.id }))).toEqual([1]);
});
