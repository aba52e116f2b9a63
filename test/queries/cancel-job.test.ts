import { beforeEach, expect, test } from 'vitest';
import { cancelJob } from '../../src/core/queries/settle/cancel-job.ts';
import type { Executor } from '../../src/core/sql/executor.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, claim, clearTables, jobRow, resultRow, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const reason = { attempt: 2, name: 'Cancelled', message: 'no longer wanted' };
const cancel = (db: Executor, id: number, queue = 'q') => cancelJob(db, tables, { id, queue, reason });

test.each([
  ['a due one', -1_000],
  ['a scheduled one', 60_000],
])('moves %s to the results, whole, with the reason', async (_, dueInMs) => {
  const id = await addJob(database.client, {
    dueInMs,
    payload: { a: 1 },
    attempt: 2,
    fence: 5,
    uniqueKey: 'u',
    metadata: { tenant: 't' },
    priority: 1,
    errors: [{ attempt: 1, name: 'Error', message: 'x', at: 'then' }],
  });
  const row = { ...(await jobRow(database.client, id)) };
  // These are about a job that lives.
  const { id: _id, errors, cancel_reason, progress, waiting_key, blockers, ...job } = row;
  expect([cancel_reason, progress, waiting_key, blockers]).toEqual([null, null, null, null]);
  expect(await cancel(database.db, id)).toBe(true);
  expect(await jobRow(database.client, id)).toBeUndefined();
  const result = await resultRow(database.client, id);
  expect(result).toEqual({
    ...job,
    job_id: id,
    state: 'cancelled',
    output: null,
    errors: [...(errors ?? []), { ...reason, at: new Date(String(result?.finished_at)).toISOString() }],
    finished_at: result?.finished_at,
  });
});

test('leaves a held job, one of another queue, and one that is not there', async () => {
  const held = await addJob(database.client, { workerId: 1 });
  const other = await addJob(database.client, { queue: 'other' });
  expect(await cancel(database.db, held)).toBe(false);
  expect(await cancel(database.db, other)).toBe(false);
  expect(await cancel(database.db, 999_999)).toBe(false);
  expect(await jobRow(database.client, held)).toBeDefined();
  expect(await jobRow(database.client, other)).toBeDefined();
});

test('against an open claim: does not wait, and leaves the job to it', async () => {
  const id = await addJob(database.client);
  const [one, two] = await twoBackends(database);
  await begin(one);
  expect(await claim(one.db)).toHaveLength(1);
  expect(await cancel(two.db, id)).toBe(false);
  await commit(one);
  expect(await jobRow(database.client, id)).toMatchObject({ worker_id: 1 });
});

test('against an open hold by lock, which no row shows: does not wait either', async () => {
  const id = await addJob(database.client);
  const [one, two] = await twoBackends(database);
  await begin(one);
  await claim(one.db, { workerId: null });
  expect(await cancel(two.db, id)).toBe(false);
  await rollback(one);
  expect(await cancel(two.db, id)).toBe(true);
});

test('a claim skips a job that is just being cancelled, and does not find it afterwards', async () => {
  const id = await addJob(database.client);
  const [one, two] = await twoBackends(database);
  await begin(one);
  expect(await cancel(one.db, id)).toBe(true);
  expect(await claim(two.db)).toEqual([]);
  await commit(one);
  expect(await claim(two.db)).toEqual([]);
});

test('a cancel that rolls back leaves the job due', async () => {
  const id = await addJob(database.client);
  const [one] = await twoBackends(database);
  await begin(one);
  await cancel(one.db, id);
  await rollback(one);
  expect(await claim(database.db)).toMatchObject([{ id }]);
});

test('of many cancels and claims at once, one wins each job', async () => {
  const [one, two] = await twoBackends(database);
  for (let round = 0; round < 50; round++) {
    const id = await addJob(database.client);
    const [byCancel, byClaim] = await Promise.all([cancel(one.db, id), claim(two.db)]);
    expect([byCancel, byClaim.length === 1].filter(Boolean)).toHaveLength(1);
    expect((await resultRow(database.client, id)) !== undefined).toBe(byCancel);
    await database.client`delete from queue_jobs`;
  }
});
