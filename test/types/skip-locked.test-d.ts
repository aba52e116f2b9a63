import { eq, isNull, type SQL, sql } from 'drizzle-orm';
import { drizzle as drizzleNeon } from 'drizzle-orm/neon-http';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import {
  integer,
  jsonb,
  pgSchema,
  pgTable,
  primaryKey,
  serial,
  text,
  timestamp,
  withReplicas,
} from 'drizzle-orm/pg-core';
import { drizzle as drizzleProxy } from 'drizzle-orm/pg-proxy';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import { drizzle } from 'drizzle-orm/postgres-js';
import type { drizzle as drizzleSqlite } from 'drizzle-orm/sqlite-proxy';
import { createQueueTables, queueJobs } from 'drizzle-queue/schema';
import {
  holdRows,
  type LockRowsOptions,
  lockRows,
  type PopRowsOptions,
  popRows,
  type RowsQuery,
} from 'drizzle-queue/skip-locked';
import { describe, expectTypeOf, test } from 'vitest';

const db = drizzle.mock();
declare const sqlite: ReturnType<typeof drizzleSqlite>;

const urls = pgTable('urls', {
  id: serial('id').primaryKey(),
  url: text('the_url').notNull(),
  foundAt: timestamp('found_at').notNull(),
  fetchedBy: text('fetched_by'),
  headers: jsonb('headers').$type<{ accept: string }>().notNull(),
});
type Url = { id: number; url: string; foundAt: Date; fetchedBy: string | null; headers: { accept: string } };

const lines = pgSchema('shop').table(
  'lines',
  { order: integer('order').notNull(), line: integer('line').notNull(), state: text('state') },
  (table) => [primaryKey({ columns: [table.order, table.line] })],
);
type Line = { order: number; line: number; state: string | null };

describe('rows have the types of the table', () => {
  test('all columns, unless asked otherwise', () => {
    expectTypeOf(popRows(db, urls)).resolves.toEqualTypeOf<Url[]>();
    expectTypeOf(lockRows(db, urls)).resolves.toEqualTypeOf<Url[]>();
    expectTypeOf(holdRows(db, urls, { set: { fetchedBy: 'me' } })).resolves.toEqualTypeOf<Url[]>();
  });

  test('a key of several columns, a Postgres schema', () => {
    expectTypeOf(popRows(db, lines)).resolves.toEqualTypeOf<Line[]>();
    expectTypeOf(lockRows(db, lines)).resolves.toEqualTypeOf<Line[]>();
    expectTypeOf(holdRows(db, lines, { set: { state: null } })).resolves.toEqualTypeOf<Line[]>();
  });

  test("the queue's own tables, under any name", () => {
    type Job = typeof queueJobs.$inferSelect;
    expectTypeOf(popRows(db, queueJobs)).resolves.toEqualTypeOf<Job[]>();
    const own = createQueueTables({ prefix: 'mail_', schema: pgSchema('work') });
    expectTypeOf(lockRows(db, own.queueJobs)).resolves.toEqualTypeOf<Job[]>();
    expectTypeOf(holdRows(db, own.queueJobs, { set: { priority: 1 } })).resolves.toEqualTypeOf<Job[]>();
  });

  test('what `returning` asks for', () => {
    const returning = {
      key: urls.id,
      by: urls.fetchedBy,
      size: sql<number>`length(${urls.url})`,
      shout: sql<string>`upper(${urls.url})`.as('shout'),
    };
    type Row = { key: number; by: string | null; size: number; shout: string };
    expectTypeOf(popRows(db, urls, { returning })).resolves.toEqualTypeOf<Row[]>();
    expectTypeOf(lockRows(db, urls, { returning })).resolves.toEqualTypeOf<Row[]>();
    expectTypeOf(holdRows(db, urls, { set: {}, returning })).resolves.toEqualTypeOf<Row[]>();
  });

  test('where a row type is expected, too', () => {
    expectTypeOf<typeof popOne>().returns.resolves.toEqualTypeOf<Url | undefined>();
    async function popOne(): Promise<Url | undefined> {
      const [url] = await popRows(db, urls);
      return url;
    }
    const take = async (rows: PromiseLike<readonly { id: number }[]>) => await rows;
    take(popRows(db, urls));
    take(lockRows(db, urls, { limit: 2 }));
    take(holdRows(db, urls, { set: { fetchedBy: null } }));
    // @ts-expect-error lines have no id
    take(popRows(db, lines));
  });
});

describe('options', () => {
  test('are Drizzle expressions', () => {
    const condition: SQL | undefined = eq(urls.fetchedBy, 'me');
    popRows(db, urls, { where: condition, orderBy: urls.id, limit: 3, strength: 'update', wait: 'nowait' });
    lockRows(db, urls, {
      orderBy: [urls.id, sql`random()`],
      limit: sql.placeholder('n'),
      strength: 'key share',
    });
    expectTypeOf<undefined>().toExtend<PopRowsOptions<{ id: typeof urls.id }>['where']>();
  });

  test('`set` knows the columns', () => {
    holdRows(db, urls, {
      set: { fetchedBy: null, url: sql`upper(${urls.url})`, foundAt: new Date(), headers: { accept: '*/*' } },
      where: isNull(urls.fetchedBy),
    });
    // @ts-expect-error no such column
    holdRows(db, urls, { set: { fetchedBye: 'me' } });
    // @ts-expect-error not null
    holdRows(db, urls, { set: { url: null } });
    // @ts-expect-error a Date
    holdRows(db, urls, { set: { foundAt: 5 } });
    // @ts-expect-error another shape
    holdRows(db, urls, { set: { headers: { accept: 5 } } });
    // @ts-expect-error what marks the row is needed
    holdRows(db, urls, {});
    // @ts-expect-error
    holdRows(db, urls);
  });

  test('are checked', () => {
    // @ts-expect-error unknown option
    popRows(db, urls, { skipLocked: true });
    // @ts-expect-error a lock that others can share
    popRows(db, urls, { strength: 'share' });
    // @ts-expect-error a lock that others can share
    holdRows(db, urls, { set: { url: '' }, strength: 'key share' });
    // @ts-expect-error no such strength
    lockRows(db, urls, { strength: 'exclusive' });
    // @ts-expect-error no such wait
    lockRows(db, urls, { wait: 'for ever' });
    // @ts-expect-error a number
    lockRows(db, urls, { limit: '5' });
    // @ts-expect-error an expression
    lockRows(db, urls, { where: 'id = 1' });
    // @ts-expect-error an expression
    lockRows(db, urls, { orderBy: 'id' });
    // @ts-expect-error columns and SQL
    popRows(db, urls, { returning: { id: 'id' } });
    expectTypeOf<'share'>().toExtend<LockRowsOptions<{ id: typeof urls.id }>['strength']>();
  });
});

describe('the database', () => {
  test('is any Drizzle database on Postgres, or a transaction of it', () => {
    popRows(drizzlePg.mock(), urls);
    popRows(drizzlePglite.mock(), urls);
    lockRows(drizzleNeon.mock(), urls);
    lockRows(
      drizzleProxy(async () => ({ rows: [] })),
      urls,
    );
    popRows(withReplicas(db, [db]), urls);
    void db.transaction(async (tx) => {
      await lockRows(tx, urls);
      await tx.transaction(async (savepoint) => {
        expectTypeOf(holdRows(savepoint, urls, { set: { url: '' } })).resolves.toEqualTypeOf<Url[]>();
      });
    });
  });

  test('is no other thing', () => {
    // @ts-expect-error SQLite
    popRows(sqlite, urls);
    // @ts-expect-error a table
    popRows(urls, urls);
    // @ts-expect-error forgotten
    popRows(urls);
  });
});

describe('the query', () => {
  test('is a part of larger ones, under its fields', async () => {
    const query = popRows(db, urls, { returning: { key: urls.id, at: urls.foundAt } });
    expectTypeOf(query).toEqualTypeOf<RowsQuery<{ key: typeof urls.id; at: typeof urls.foundAt }>>();
    const popped = db.$with('popped').as(query);
    const selected = db.with(popped).select().from(popped);
    expectTypeOf(selected).resolves.toEqualTypeOf<{ key: number; at: Date }[]>();
    // @ts-expect-error not among the fields
    popped.url;
    const next = db.$with('next').as(lockRows(db, urls));
    db.with(next).update(urls).set({ fetchedBy: 'me' }).from(next).where(eq(urls.id, next.id));
  });

  test('can be prepared, batched, and looked at', async () => {
    const query = holdRows(db, urls, { set: { fetchedBy: 'me' } });
    expectTypeOf(query.prepare('hold').execute({ n: 1 })).resolves.toEqualTypeOf<Url[]>();
    expectTypeOf(query.execute()).resolves.toEqualTypeOf<Url[]>();
    expectTypeOf(query.toSQL().sql).toEqualTypeOf<string>();
    const [rows] = await drizzleNeon.mock().batch([query]);
    expectTypeOf(rows).toEqualTypeOf<Url[]>();
  });
});
