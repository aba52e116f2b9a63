import { sql } from 'drizzle-orm';
import { defineJob, unvalidated } from 'drizzle-queue';
import { from, type ImportMapping, type ImportSource, importJobs } from 'drizzle-queue/import';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { TableSource } from '../../src/entries/import/source.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const numbered = defineJob('numbered', { payload: unvalidated<{ n: number }>(), priority: 4 });
const mapping = { numbered: { job: numbered } };

beforeEach(async () => {
  await clearTables(database.client);
  await database.client`drop table if exists legacy`;
});

/** A table with these columns, and the source of its rows. */
async function legacy(columns: string, more: Partial<Parameters<typeof from.table>[0]['columns']> = {}) {
  await database.client.unsafe(`create table legacy (${columns}, waits bool not null default true)`);
  return from.table({
    table: sql`legacy`,
    columns: { id: sql`id`, payload: sql`data`, ...more },
    where: sql`waits`,
    name: 'numbered',
  });
}

async function numbers(): Promise<number[]> {
  const rows = await database.client`select (payload->>'n')::int as n from queue_jobs order by run_at, id`;
  return rows.map(({ n }) => Number(n));
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test.each([
  ['numbers', 'bigserial', 'default'],
  ['texts of a fixed length', 'char(6)', `lpad(n::text, 6, '0')`],
  [
    'texts in an order of their own',
    'text collate "C"',
    `case when n % 2 = 0 then 'a' else 'B' end || lpad(n::text, 4, '0')`,
  ],
])('ids that are %s, by their bare name: no row is passed over between two batches', async (_, type, id) => {
  const source = await legacy(`id ${type} primary key, data jsonb`);
  await database.client.unsafe(
    id === 'default'
      ? `insert into legacy (data) select jsonb_build_object('n', n) from generate_series(1, 250) n order by n`
      : `insert into legacy (id, data) select ${id}, jsonb_build_object('n', n) from generate_series(1, 250) n`,
  );
  const expected = { imported: 250, left: 0 };
  for (const dryRun of [true, false])
    expect(await importJobs(database.db, source, mapping, { batchSize: 10, dryRun })).toMatchObject(expected);
  expect((await numbers()).sort((a, b) => a - b)).toEqual(upTo(250));
  expect(await database.client`select from legacy`).toHaveLength(0);
});

test('where they stand is listed for many batches at once, and they go in that order', async () => {
  const source = await legacy('id serial primary key, data jsonb');
  await database.client`insert into legacy (data) select jsonb_build_object('n', n) from generate_series(1, 95) n`;
  if (source.type !== 'table') throw new Error('it is no table');
  let lists = 0;
  const counting: ImportSource = {
    ...source,
    list: (db, page) => {
      lists++;
      return source.list(db, page);
    },
  };
  expect(await importJobs(database.db, counting, mapping, { batchSize: 10 })).toMatchObject({ imported: 95 });
  expect(lists).toBe(1);
  expect(await numbers()).toEqual(upTo(95));
});

test('a NUL character in JSON, and numbers beyond an integer, stop no other row', async () => {
  const source = await legacy('id serial primary key, data json, tries int8', { attempts: sql`tries` });
  await database.client.unsafe(String.raw`insert into legacy (data, tries) values
    ('{"n": 1}', 1), ('{"n": "\u0000"}', 1), ('{"n": "\ud800"}', 1), ('{"n": 4}', 9999999999), ('{"n": 5}', null)`);
  const { imported, leftJobs } = await importJobs(database.db, source, mapping);
  expect(imported).toBe(2);
  expect(leftJobs.map(({ id, why, message }) => [id, why, message])).toEqual([
    ['2', 'invalid', expect.stringContaining('contains a NUL character')],
    ['3', 'invalid', expect.stringContaining('half of a surrogate pair')],
    ['4', 'invalid', expect.stringContaining('Its attempts must be a whole number')],
  ]);
  expect(await numbers()).toEqual([1, 5]);
});

test('what a rule leaves undefined is carried over, but for the key', async () => {
  const source = await legacy(
    'id serial primary key, data jsonb, at timestamptz, tries int, most int, rank int, key text',
    {
      runAt: sql`at`,
      attempts: sql`tries`,
      maxAttempts: sql`most`,
      priority: sql`rank`,
      key: sql`key`,
    },
  );
  await database.client`
    insert into legacy (data, at, tries, most, rank, key) values ('{"n": 1}', now() + interval '1 day', 2, 30, 3, 'a')`;
  const nothing = { runAt: undefined, maxAttempts: undefined, priority: undefined, uniqueKey: undefined };
  const rule = { job: numbered, options: () => nothing };
  await importJobs(database.db, source, { numbered: rule });
  const rows = await database.client`
    select run_at > now() + interval '23 hours' as later, attempt, max_attempts, priority, unique_key from queue_jobs`;
  expect(rows).toEqual([{ later: true, attempt: 2, max_attempts: 30, priority: 7, unique_key: null }]);
});

test('options that come later than the job are refused, and the job is left', async () => {
  const source = await legacy('id serial primary key, data jsonb');
  await database.client`insert into legacy (data) values ('{"n": 1}')`;
  // A caller without TypeScript.
  const rule: unknown = { job: numbered, options: async () => ({ priority: 0 }) };
  expect(await importJobs(database.db, source, { numbered: rule } as ImportMapping)).toMatchObject({
    imported: 0,
    leftJobs: [{ why: 'invalid', message: 'importJobs: options must not return a promise' }],
  });
});

test('rows that share an id are all imported, or none', async () => {
  const source = await legacy('id int, data jsonb');
  await database.client`insert into legacy (id, data) values (1, '{"n": 1}'), (1, '{"n": 2}'), (2, '{"n": 3}')`;
  expect(await importJobs(database.db, source, mapping, { batchSize: 1 })).toMatchObject({ imported: 3 });
  expect((await numbers()).sort()).toEqual([1, 2, 3]);
});

test('rows that others have locked are left, and those that others have taken are not', async () => {
  const source = await legacy('id serial primary key, data jsonb');
  await database.client`insert into legacy (data) select jsonb_build_object('n', n) from generate_series(1, 20) n`;
  const [other, worker] = [await database.client.reserve(), await database.client.reserve()];
  onTestFinished(() => {
    other.release();
    worker.release();
  });
  await other`begin`;
  await other`select from legacy where id in (3, 14) for update`;
  const taking: ImportSource = {
    ...source,
    read: async (...args: Parameters<TableSource['read']>) => {
      await worker`update legacy set waits = false where id = 7`;
      if (source.type !== 'table') throw new Error('it is no table');
      return await source.read(...args);
    },
  } as TableSource;
  const report = await importJobs(database.db, taking, mapping, { batchSize: 10 });
  await other`rollback`;
  expect(report).toMatchObject({ imported: 17, left: 2, names: [{ name: 'numbered', left: 2 }] });
  expect(report.leftJobs).toEqual(
    ['3', '14'].map((id) => ({ id, name: 'numbered', why: 'locked', message: expect.any(String) })),
  );
  expect(await importJobs(database.db, source, mapping)).toMatchObject({ imported: 2, left: 0 });
});
