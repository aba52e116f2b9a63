import { inArray, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { holdRows, lockRows, popRows } from 'drizzle-queue/skip-locked';
import type postgres from 'postgres';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { connectTwo } from './support/connect-two.ts';
import { createTables, fillTables, orderLines, urls } from './support/tables.ts';

const database = useTestDatabase();

let connections: readonly [Connection, Connection];
beforeAll(async () => {
  await createTables(database.client);
  // It would correct the statistics whenever its minute comes.
  await database.client.unsafe(`
    alter table urls set (autovacuum_enabled = false);
    alter table "old ""shop"""."Order Lines" set (autovacuum_enabled = false);`);
  connections = await connectTwo(database);
});

/**
 * Tables that were all but empty when they were last vacuumed, and have filled up since: a queue after a quiet night. Anew for each
 * statement: what the one before has left, even when rolled back, makes the table larger and the planner wiser.
 */
async function fillUpAfterQuietNight(client: postgres.Sql): Promise<void> {
  await fillTables(client, 200);
  await client.unsafe(`
    delete from urls where id < 200;
    delete from "old ""shop"""."Order Lines" where ("order", "Line no.") <> (19, 9);`);
  await client.unsafe('vacuum analyze urls, "old ""shop"""."Order Lines"');
  await client.unsafe(`
    insert into urls (id, the_url) select n, 'https://example.org/' || n from generate_series(1, 199) as n;
    insert into "old ""shop"""."Order Lines" select n / 10, n % 10 from generate_series(0, 198) as n;`);
}

/** What the planner may be made to avoid, by settings or by what it believes; each leads to other joins and scans. */
const plans = [
  'none',
  'enable_material',
  'enable_nestloop',
  'enable_hashjoin',
  'enable_hashagg',
  'enable_seqscan',
  'enable_indexscan',
  'enable_sort',
];

/** Runs a query in a transaction, and counts the rows that it answers and those that others can no longer lock. */
async function countTaken(
  build: (tx: Connection['db']) => PromiseLike<unknown[]>,
  table: PgTable,
  plan = 'none',
): Promise<{ answered: number; locked: number }> {
  const [a, b] = connections;
  await fillUpAfterQuietNight(b.client);
  await a.client.unsafe('begin');
  if (plan !== 'none') await a.client.unsafe(`set local ${plan} = off`);
  const answered = (await build(a.db)).length;
  const free = await b.db.execute(sql`select 1 from ${table} for update skip locked`);
  await a.client.unsafe('rollback');
  return { answered, locked: 200 - free.length };
}

describe('the obvious statement', () => {
  test('updates the whole table where one row was asked for', async () => {
    const taken = await countTaken(
      (tx) =>
        tx
          .update(urls)
          .set({ fetchedBy: 'me' })
          .where(
            inArray(
              urls.id,
              tx
                .select({ id: urls.id })
                .from(urls)
                .orderBy(urls.id)
                .limit(1)
                .for('update', { skipLocked: true }),
            ),
          )
          .returning(),
      urls,
    );
    expect(taken).toEqual({ answered: 200, locked: 200 });
  });

  test('does so with a key of several columns, too', async () => {
    const { order, line } = orderLines;
    const taken = await countTaken(
      (tx) =>
        tx
          .delete(orderLines)
          .where(
            sql`(${order}, ${line}) in (select ${order}, ${line} from ${orderLines} order by ${order}, ${line} limit 1 for update skip locked)`,
          )
          .returning(),
      orderLines,
      'enable_material',
    );
    expect(taken).toEqual({ answered: 200, locked: 200 });
  });
});

describe.each(plans)('with wrong statistics, and this setting of the planner off: %s', (plan) => {
  test.each([1, 7])('no more than %i rows are popped, held or locked', async (limit) => {
    const expected = { answered: limit, locked: limit };
    const byId = { orderBy: urls.id, limit };
    const byLine = { orderBy: [orderLines.order, orderLines.line], limit };
    expect(await countTaken((tx) => popRows(tx, urls, byId), urls, plan)).toEqual(expected);
    expect(await countTaken((tx) => popRows(tx, orderLines, byLine), orderLines, plan)).toEqual(expected);
    const set = { fetchedBy: 'me' };
    expect(await countTaken((tx) => holdRows(tx, urls, { ...byId, set }), urls, plan)).toEqual(expected);
    const close = { ...byLine, set: { state: 'closed' } };
    expect(await countTaken((tx) => holdRows(tx, orderLines, close), orderLines, plan)).toEqual(expected);
    expect(await countTaken((tx) => lockRows(tx, urls, byId), urls, plan)).toEqual(expected);
  });

  test('lockRows is as safe in the place where the obvious subselect is not', async () => {
    const first = (tx: Connection['db']) =>
      lockRows(tx, urls, { orderBy: urls.id, limit: 3, returning: { id: urls.id } });
    const taken = await countTaken(
      (tx) =>
        tx
          .delete(urls)
          .where(inArray(urls.id, first(tx)))
          .returning(),
      urls,
      plan,
    );
    expect(taken).toEqual({ answered: 3, locked: 3 });
  });
});

test('a deep table that the planner takes for an almost empty one is read by its primary key', async () => {
  const [{ client, db }] = connections;
  await fillUpAfterQuietNight(client);
  await client.unsafe(`
    begin;
    insert into urls (the_url) select 'https://example.org/' || n from generate_series(201, 30000) as n;
    insert into "old ""shop"""."Order Lines" select n / 10, n % 10 from generate_series(200, 30000) as n;`);
  for (const query of [
    popRows(db, urls, { orderBy: urls.id, limit: 10 }),
    popRows(db, orderLines, { orderBy: [orderLines.order, orderLines.line], limit: 10 }),
  ]) {
    const { sql: text, params } = query.toSQL();
    const plan = await client.unsafe(`explain (analyze, costs off) ${text}`, params as number[]);
    const lines = plan.map((row) => String(row['QUERY PLAN'])).join('\n');
    expect(lines).not.toContain('Seq Scan');
    expect(lines.match(/Index Scan/g)).toHaveLength(2);
  }
  await client.unsafe('rollback');
});
