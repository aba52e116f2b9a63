import { PgDialect } from 'drizzle-orm/pg-core';
import { beforeEach, expect, test } from 'vitest';
import { pruneResults, pruneResultsQuery } from '../../src/core/queries/operate/prune-results.ts';
import { redriveJobs } from '../../src/core/queries/operate/redrive-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { clearTables, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const HOUR = 3_600_000;

/** Results by id, each finished so many milliseconds ago. */
async function addResults(ages: Readonly<Record<number, number>>, state = 'completed'): Promise<void> {
  await database.client`
    insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
      metadata, created_at, run_at, finished_at)
    select age.key::int8, 'q', 'k', 'null', ${state}, '[]', 1, 20, 5, 1, '{}', now(), now(),
      clock_timestamp() - age.value::float8 * interval '1 ms'
    from jsonb_each_text(${JSON.stringify(ages)}::text::jsonb) as age`;
}

const hoursAgo = (count: number): Record<number, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [index + 1, (index + 1) * HOUR]));

async function remaining(): Promise<number[]> {
  const rows = await database.client<{ id: number }[]>`
    select job_id::int as id from queue_results order by job_id`;
  return rows.map(({ id }) => id);
}

test('deletes what finished longer ago than the retention, of every state and queue', async () => {
  await addResults({ 1: HOUR + 1, 2: HOUR - 60_000, 3: 0 });
  await addResults({ 4: 2 * HOUR }, 'discarded');
  await addResults({ 5: 2 * HOUR }, 'cancelled');
  await database.client`update queue_results set queue = 'other' where job_id = 5`;
  expect((await pruneResults(database.db, tables, { retentionMs: HOUR, limit: 100 })).pruned).toBe(3);
  expect(await remaining()).toEqual([2, 3]);
});

test('a result is kept to the last microsecond of its retention', async () => {
  const [{ client }] = await twoBackends(database);
  await addResults({ 1: 0 });
  // Inside a function the time stands still, so that the result can be just as old as it is to be.
  const { sql: text } = new PgDialect().sqlToQuery(
    pruneResultsQuery(tables, { retentionMs: HOUR, limit: 100 }),
  );
  await client.unsafe(`
    create function pg_temp.prune_at(age interval) returns float8 language plpgsql as $function$
    declare pruned float8;
    begin
      update queue_results set finished_at = statement_timestamp() - age;
      execute $prune$${text}$prune$ into pruned using ${HOUR}::float8, 100;
      return pruned;
    end $function$`);
  const pruneAt = async (age: string) =>
    (await client<{ pruned: number }[]>`select pg_temp.prune_at(${age}::text::interval) as pruned`)[0]
      ?.pruned;
  expect(await pruneAt('1 hour')).toBe(0);
  expect(await pruneAt('1 hour 1 microsecond')).toBe(1);
});

test('a retention of 0 deletes all that has finished before; a century deletes nothing', async () => {
  await addResults({ 1: 1, 2: HOUR, 3: 365 * 24 * HOUR });
  expect(
    (await pruneResults(database.db, tables, { retentionMs: 100 * 366 * 24 * HOUR, limit: 100 })).pruned,
  ).toBe(0);
  expect((await pruneResults(database.db, tables, { retentionMs: 0, limit: 100 })).pruned).toBe(3);
});

test('at most the limit, the oldest first', async () => {
  await addResults(hoursAgo(7));
  expect((await pruneResults(database.db, tables, { retentionMs: 2.5 * HOUR, limit: 2 })).pruned).toBe(2);
  expect(await remaining()).toEqual([1, 2, 3, 4, 5]);
  expect((await pruneResults(database.db, tables, { retentionMs: 2.5 * HOUR, limit: 2 })).pruned).toBe(2);
  expect((await pruneResults(database.db, tables, { retentionMs: 2.5 * HOUR, limit: 2 })).pruned).toBe(1);
  expect((await pruneResults(database.db, tables, { retentionMs: 2.5 * HOUR, limit: 2 })).pruned).toBe(0);
  expect(await remaining()).toEqual([1, 2]);
});

test('two at once delete different results, and neither waits', async () => {
  await addResults(hoursAgo(10));
  const [one, two] = await twoBackends(database);
  await begin(one);
  expect((await pruneResults(one.db, tables, { retentionMs: 0, limit: 4 })).pruned).toBe(4);
  expect((await pruneResults(two.db, tables, { retentionMs: 0, limit: 4 })).pruned).toBe(4);
  expect(await remaining()).toEqual([1, 2, 7, 8, 9, 10]);
  await commit(one);
  expect(await remaining()).toEqual([1, 2]);
});

test('many at once over thousands of results delete each once', async () => {
  await addResults(hoursAgo(3_000));
  const connections = await database.connect(4);
  const pruned = await Promise.all(
    connections.map(async ({ db }) => {
      let sum = 0;
      for (let last = 1; last > 0; sum += last) {
        last = (await pruneResults(db, tables, { retentionMs: 0, limit: 100 })).pruned;
      }
      return sum;
    }),
  );
  expect(pruned.reduce((a, b) => a + b)).toBe(3_000);
});

test('leaves a result that is just being redriven, and does not wait for that', async () => {
  await addResults({ 1: HOUR, 2: HOUR }, 'discarded');
  const [one, two] = await twoBackends(database);
  await begin(one);
  await redriveJobs(one.db, tables, { id: 1 });
  expect((await pruneResults(two.db, tables, { retentionMs: 0, limit: 100 })).pruned).toBe(1);
  await rollback(one);
  expect(await remaining()).toEqual([1]);
});
