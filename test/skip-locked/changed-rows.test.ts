import { and, eq, type SQL, sql } from 'drizzle-orm';
import { holdRows, lockRows, popRows } from 'drizzle-queue/skip-locked';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { connectTwo } from './support/connect-two.ts';
import { createTables, fillTables, orderLines, urls } from './support/tables.ts';

const database = useTestDatabase();
beforeAll(async () => {
  await createTables(database.client);
  // True, but only when nobody has the gate closed; volatile, so that it is asked for each row.
  await database.client.unsafe(`
    create function gate_is_open() returns boolean volatile language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(1); return true; end $$`);
});
beforeEach(() => fillTables(database.client, 5));

const gateIsOpen = sql`gate_is_open()`;
const anUrl: SQL | undefined = and(gateIsOpen, eq(urls.depth, 1));
const aLine: SQL | undefined = and(gateIsOpen, eq(orderLines.state, 'open'));
const byLine = [orderLines.order, orderLines.line];

/** Runs `take`; changes the row that it has found first, after its statement has begun and before it has locked anything. */
async function changeMeanwhile<T>(
  take: (db: Connection['db']) => PromiseLike<T>,
  change: string,
): Promise<T> {
  const [a, b] = await connectTwo(database);
  await a.client.unsafe('begin; select pg_advisory_xact_lock(1)');
  // A query is sent when it is awaited.
  const taken = Promise.resolve().then(() => take(b.db));
  await until(async () => {
    const [row] = await database.client`
      select 1 from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`;
    return row !== undefined;
  });
  await a.client.unsafe(`${change}; commit`);
  return await taken;
}

// In the table's order, the first row with depth 1 is the URL 1, the next one is 4.
describe('a row that was changed since the statement began, and still matches, is taken as it is now', () => {
  const change = "update urls set fetched_by = 'somebody' where id = 1";
  const changeLine = `update "old ""shop"""."Order Lines" set state = 'open' where "order" = 0 and "Line no." = 0`;

  test('popRows', async () => {
    const popped = await changeMeanwhile(
      (db) => popRows(db, urls, { where: anUrl, orderBy: urls.id }),
      change,
    );
    expect(popped).toMatchObject([{ id: 1, fetchedBy: 'somebody' }]);
    expect(await database.db.$count(urls)).toBe(4);
  });

  test('popRows, with a key of several columns', async () => {
    const popped = await changeMeanwhile(
      (db) => popRows(db, orderLines, { where: aLine, orderBy: byLine }),
      changeLine,
    );
    expect(popped).toMatchObject([{ order: 0, line: 0 }]);
    expect(await database.db.$count(orderLines)).toBe(4);
  });

  test('holdRows', async () => {
    const held = await changeMeanwhile(
      (db) =>
        holdRows(db, urls, {
          set: { fetchedBy: sql`${urls.fetchedBy} || ' and me'` },
          where: anUrl,
          orderBy: urls.id,
        }),
      change,
    );
    expect(held).toMatchObject([{ id: 1, fetchedBy: 'somebody and me' }]);
  });

  test('holdRows, with a key of several columns', async () => {
    const held = await changeMeanwhile(
      (db) => holdRows(db, orderLines, { set: { state: 'packed' }, where: aLine, orderBy: byLine }),
      changeLine,
    );
    expect(held).toEqual([{ order: 0, line: 0, state: 'packed' }]);
    expect(await database.db.$count(orderLines, eq(orderLines.state, 'packed'))).toBe(1);
  });

  test('lockRows', async () => {
    const locked = await changeMeanwhile(
      (db) => lockRows(db, urls, { where: anUrl, orderBy: urls.id }),
      change,
    );
    expect(locked).toMatchObject([{ id: 1, fetchedBy: 'somebody' }]);
  });
});

describe('a row that was changed since the statement began, and no longer matches, is left alone', () => {
  const change = 'update urls set depth = 9 where id = 1';
  const changeLine = `update "old ""shop"""."Order Lines" set state = 'closed' where "order" = 0 and "Line no." = 0`;

  test('popRows', async () => {
    const popped = await changeMeanwhile(
      (db) => popRows(db, urls, { where: anUrl, orderBy: urls.id }),
      change,
    );
    expect(popped.map(({ id }) => id)).toEqual([4]);
  });

  test('popRows, with a key of several columns', async () => {
    const popped = await changeMeanwhile(
      (db) => popRows(db, orderLines, { where: aLine, orderBy: byLine }),
      changeLine,
    );
    expect(popped.map(({ line }) => line)).toEqual([1]);
  });

  test('holdRows', async () => {
    const held = await changeMeanwhile(
      (db) => holdRows(db, urls, { set: { fetchedBy: 'me' }, where: anUrl, orderBy: urls.id }),
      change,
    );
    expect(held.map(({ id }) => id)).toEqual([4]);
  });

  test('lockRows', async () => {
    const locked = await changeMeanwhile(
      (db) => lockRows(db, urls, { where: anUrl, orderBy: urls.id }),
      change,
    );
    expect(locked.map(({ id }) => id)).toEqual([4]);
  });

  test('popRows, when the row is gone altogether', async () => {
    const popped = await changeMeanwhile(
      (db) => popRows(db, urls, { where: anUrl, orderBy: urls.id }),
      'delete from urls where id = 1',
    );
    expect(popped.map(({ id }) => id)).toEqual([4]);
  });
});
