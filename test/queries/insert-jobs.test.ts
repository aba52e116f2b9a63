import { beforeEach, describe, expect, test } from 'vitest';
import type { NewJob } from '../../src/core/job/new-job.ts';
import { findStandingJobs } from '../../src/core/queries/enqueue/find-standing-jobs.ts';
import { insertJobs as insertJobsAndWake } from '../../src/core/queries/enqueue/insert-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJobs, claim, clearTables, jobRow, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

/** The ids alone. */
const insertJobs = async (...args: Parameters<typeof insertJobsAndWake>) =>
  (await insertJobsAndWake(...args)).ids;

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

function newJob(job: Partial<NewJob> = {}): NewJob {
  return {
    queue: 'q',
    kind: 'k',
    payload: 'null',
    priority: 5,
    maxAttempts: 20,
    delayMs: 0,
    runAtMs: null,
    uniqueKey: null,
    metadata: '{}',
    ...job,
  };
}

const keyed = (uniqueKey: string, job: Partial<NewJob> = {}): NewJob => newJob({ uniqueKey, ...job });

async function payloads(ids: readonly (number | undefined)[]): Promise<unknown[]> {
  return Promise.all(ids.map(async (id) => id && (await jobRow(database.client, id))?.payload));
}

test('writes every column, with the database’s time', async () => {
  const [id] = await insertJobs(database.db, tables, [
    newJob({
      queue: 'mail',
      kind: `it's "odd"`,
      payload: '{"a":[1,"ü"]}',
      priority: 0,
      maxAttempts: 3,
      delayMs: 90_000,
      uniqueKey: 'u',
      metadata: '{"tenant":7}',
    }),
  ]);
  const row = await jobRow(database.client, id ?? 0);
  expect(row).toEqual({
    id,
    queue: 'mail',
    kind: `it's "odd"`,
    payload: { a: [1, 'ü'] },
    priority: 0,
    max_attempts: 3,
    attempt: 0,
    // From the clock.
    fence: row?.fence,
    worker_id: null,
    claimed_at: null,
    unique_key: 'u',
    waiting_key: null,
    group_key: null,
    weight: null,
    batch_id: null,
    blockers: null,
    errors: [],
    metadata: { tenant: 7 },
    cancel_reason: null,
    progress: null,
    run_at: row?.run_at,
    created_at: row?.created_at,
  });
  expect(Date.parse(String(row?.run_at)) - Date.parse(String(row?.created_at))).toBe(90_000);
});

test.each([
  '0001-01-01T00:00:00.000Z',
  '1969-12-31T23:59:59.999Z',
  '2024-02-29T12:34:56.789Z',
  '9999-12-31T00:00:00.000Z',
])('keeps the run_at %s to the millisecond', async (time) => {
  const [id] = await insertJobs(database.db, tables, [newJob({ runAtMs: Date.parse(time) })]);
  const [row] = await database.client`
      select to_char(run_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as t from queue_jobs where id = ${id ?? 0}`;
  expect(row).toEqual({ t: time.replace('Z', '000Z') });
});

describe.each([
  ['without keys', (n: number) => newJob({ payload: `${n}` })],
  ['with keys in falling order', (n: number) => keyed(`${99_999 - n}`, { payload: `${n}` })],
  [
    'with some keys',
    (n: number) => newJob({ payload: `${n}`, uniqueKey: n % 3 === 0 ? `${n % 7}${n}` : null }),
  ],
])('many at once, %s', (_, job) => {
  test('answers their ids in input order, which is also the order of the ids', async () => {
    const ids = await insertJobs(
      database.db,
      tables,
      Array.from({ length: 500 }, (_, n) => job(n)),
    );
    expect(await payloads(ids.slice(0, 20))).toEqual(Array.from({ length: 20 }, (_, n) => n));
    expect(ids.map(Number)).toEqual(ids.map(Number).toSorted((a, b) => a - b));
    expect(new Set(ids).size).toBe(500);
    // So they run in the order in which they were given.
    const claimed = await claim(database.db, { limit: 500 });
    expect(claimed.map(({ id }) => id)).toEqual(ids);
  });
});

describe('unique keys', () => {
  test('a key is taken per queue and kind, by a live job', async () => {
    await addJobs(database.client, [{ uniqueKey: 'a', workerId: 1 }]);
    expect(await insertJobs(database.db, tables, [keyed('a')])).toEqual([undefined]);
    const ids = await insertJobs(database.db, tables, [
      keyed('b', { payload: '0' }),
      keyed('a', { payload: '1' }),
      keyed('a', { payload: '2', queue: 'other' }),
      keyed('a', { payload: '3', kind: 'other' }),
      newJob({ payload: '4' }),
      keyed('b', { payload: '5' }),
    ]);
    expect(await payloads(ids)).toEqual([0, undefined, 2, 3, 4, undefined]);
  });

  test('findStandingJobs finds who is in the way, in input order', async () => {
    const [a, b] = await addJobs(database.client, [
      { uniqueKey: 'a' },
      { uniqueKey: 'b', kind: 'other' },
      { uniqueKey: 'c', queue: 'other' },
      { uniqueKey: 'a', kind: 'other' },
    ]);
    const asked = [keyed('c'), keyed('b', { kind: 'other' }), keyed('a'), keyed('a'), newJob()];
    expect(await findStandingJobs(database.db, tables, asked)).toEqual([undefined, b, a, a, undefined]);
  });

  test.each([
    ['one', [keyed('a')]],
    ['one among several', [keyed('0'), keyed('a'), newJob()]],
  ])('%s waits for an open insert of its key: left out if that commits', async (_, jobs) => {
    const [one, two] = await twoBackends(database);
    await begin(one);
    const [first] = await insertJobs(one.db, tables, [keyed('a')]);
    const inserting = insertJobs(two.db, tables, jobs);
    await untilBlocked(database, two);
    await commit(one);
    const place = jobs.findIndex(({ uniqueKey }) => uniqueKey === 'a');
    const ids = await inserting;
    expect(ids[place]).toBeUndefined();
    expect(ids.filter((id) => id === undefined)).toHaveLength(1);
    // A statement of its own sees what was committed while the insert waited.
    expect(await findStandingJobs(two.db, tables, [keyed('a')])).toEqual([first]);
  });

  test('waits for an open insert of its key: inserted if that rolls back', async () => {
    const [one, two] = await twoBackends(database);
    await begin(one);
    await insertJobs(one.db, tables, [keyed('a')]);
    const inserting = insertJobs(two.db, tables, [keyed('a')]);
    await untilBlocked(database, two);
    await rollback(one);
    expect(await inserting).toEqual([expect.any(Number)]);
  });

  test('waits for an open end of the job with its key: inserted if that commits', async () => {
    await addJobs(database.client, [{ uniqueKey: 'a' }]);
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client`delete from queue_jobs`;
    const inserting = insertJobs(two.db, tables, [keyed('a')]);
    await untilBlocked(database, two);
    await commit(one);
    expect(await inserting).toEqual([expect.any(Number)]);
  });

  test('waits for an open claim of the job with its key, as for any change of its row', async () => {
    await addJobs(database.client, [{ uniqueKey: 'a' }]);
    const [one, two] = await twoBackends(database);
    await begin(one);
    await claim(one.db, { workerId: null });
    const inserting = insertJobs(two.db, tables, [keyed('a')]);
    await untilBlocked(database, two);
    await commit(one);
    expect(await inserting).toEqual([undefined]);
  });
});
