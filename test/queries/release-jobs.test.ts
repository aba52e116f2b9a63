import { beforeEach, expect, test } from 'vitest';
import { releaseJobs } from '../../src/core/queries/hold/release-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, addJobs, claim, clearTables, jobRow, tables } from './support/jobs.ts';
import { begin, commit, twoBackends } from './support/locks.ts';
import { releaseUnknown } from './support/release-unknown.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const everywhere = { after: 0 };
const mine = { queue: 'q', workerId: 1, except: [], ids: everywhere };

test('gives back what the worker holds in this queue, with the attempt; the fence and the place stay', async () => {
  const [own, other, waiting, elsewhere] = await addJobs(database.client, [
    { workerId: 1, fence: 3, attempt: 2, dueInMs: -7_000 },
    { workerId: 2, fence: 3, attempt: 2 },
    { fence: 3, attempt: 2 },
    { workerId: 1, fence: 3, attempt: 2, queue: 'other' },
  ]);
  const before = await jobRow(database.client, own);
  expect(await releaseUnknown(database.db, mine)).toBe(1);
  expect(await jobRow(database.client, own)).toEqual({
    ...before,
    worker_id: null,
    claimed_at: null,
    attempt: 1,
  });
  expect(await jobRow(database.client, other)).toMatchObject({ worker_id: 2, attempt: 2 });
  expect(await jobRow(database.client, waiting)).toMatchObject({ worker_id: null, attempt: 2 });
  expect(await jobRow(database.client, elsewhere)).toMatchObject({ worker_id: 1, attempt: 2 });
  expect(await releaseUnknown(database.db, mine)).toBe(0);
});

test('except the jobs that the worker knows of', async () => {
  const [known, unknown, anew] = await addJobs(database.client, [
    { workerId: 1, fence: 3, attempt: 1 },
    { workerId: 1, fence: 3, attempt: 1 },
    { workerId: 1, fence: 3, attempt: 2 },
  ]);
  const except = [
    { id: known, fence: 3 },
    // It knows this one from a claim that it has lost, and holds it by another whose answer never came.
    { id: anew, fence: 2 },
    { id: 999_999, fence: 1 },
  ];
  expect(await releaseUnknown(database.db, { ...mine, except })).toBe(2);
  expect(await jobRow(database.client, known)).toMatchObject({ worker_id: 1 });
  expect(await jobRow(database.client, unknown)).toMatchObject({ worker_id: null });
  expect(await jobRow(database.client, anew)).toMatchObject({ worker_id: null, attempt: 1 });
});

test('gives back no attempt that has begun, where the server may have forgotten its end', async () => {
  const [begun, ahead] = await addJobs(database.client, [
    { workerId: 1, fence: 3, attempt: 2 },
    { workerId: 1, fence: 3, attempt: 2 },
  ]);
  await database.client`update queue_jobs set claimed_at = null where id = ${ahead}`;
  expect(await releaseUnknown(database.db, { ...mine, mayHaveBegun: true })).toBe(2);
  expect(await jobRow(database.client, begun)).toMatchObject({
    worker_id: null,
    claimed_at: null,
    attempt: 2,
  });
  expect(await jobRow(database.client, ahead)).toMatchObject({ worker_id: null, attempt: 1 });
});

test('a job that a peer is just taking over stays with the peer', async () => {
  const id = await addJob(database.client, { workerId: 1, fence: 1, attempt: 1 });
  const [one, two] = await twoBackends(database);
  await begin(one);
  await claim(one.db, { workerId: 2, fromGoneWorkers: true });
  expect(await releaseUnknown(two.db, mine)).toBe(0);
  await commit(one);
  expect(await releaseUnknown(two.db, mine)).toBe(0);
  expect(await jobRow(database.client, id)).toMatchObject({ worker_id: 2, fence: 2, attempt: 2 });
});

test('a locked row is named, and does not keep back the others', async () => {
  const [locked, free] = await addJobs(database.client, [
    { workerId: 1, fence: 3, attempt: 2 },
    { workerId: 1, fence: 3, attempt: 2 },
  ]);
  const [one, two] = await twoBackends(database);
  await begin(one);
  await one.client`select from queue_jobs where id = ${locked} for update`;
  const jobs = [locked, free].map((id) => ({ id, fence: 3 }));
  const holder = { queue: 'q', workerId: 1 };
  expect(await releaseJobs(two.db, tables, holder, jobs)).toEqual({ released: 1, locked: new Set([locked]) });
  await commit(one);
  expect(await releaseJobs(two.db, tables, holder, jobs)).toEqual({ released: 1, locked: new Set() });
  expect(await jobRow(database.client, locked)).toMatchObject({ worker_id: null, attempt: 1 });
});
