import { sql } from 'drizzle-orm';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { setAsideJob } from '../../src/core/queries/claim/set-aside-job.ts';
import { parkJobs } from '../../src/core/queries/settle/park-jobs.ts';
import { countBatch } from '../../src/features/batches/queries/count-batch.ts';
import { deleteLeftBatches } from '../../src/features/batches/queries/delete-left-batches.ts';
import { endMembers } from '../../src/features/batches/queries/end-members.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { spareMembers } from '../../src/features/batches/queries/spare-members.ts';
import { tallyMissing } from '../../src/features/batches/queries/tally-missing.ts';
import { waitForBatches } from '../../src/features/batches/queries/wait-for-batches.ts';
import { endAllMembers, endUnclaimedJobs } from '../../src/features/batches/worker/move-on.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase({ max: 3 });
const all = { ...tables, ...workflowTables };

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  const { client } = database;
  await clearTables(client);
  await clearWorkflowTables(database);
  // Batch 1 has the members 1 to 4, and is to end; job 9 waits for it, held by worker 7 under fence 5.
  await client`
    insert into queue_batches (id, total, pending, cancel_reason) overriding system value
    values (1, 4, 4, 'no longer wanted')`;
  await client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id) overriding system value
    select n, 'q', 'k', '1', 3, 1 from generate_series(1, 4) as n`;
  await client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, worker_id, claimed_at, fence)
    overriding system value values (9, 'q', 'k', '1', 3, 7, now(), 5)`;
  await client`insert into queue_waits (batch_id, job_id, queue, policy) values (1, 9, 'q', 'parent')`;
});

const asked = async () =>
  (await database.client`select id::int from queue_jobs where cancel_reason is not null order by id`).map(
    ({ id }) => id,
  );

describe('members that are to end', () => {
  test('are asked, but for one whose row is locked', async () => {
    const end = { queue: 'q', ids: [1, 2, 3, 4], channel: undefined };
    await database.db.transaction(async (tx) => {
      await tx.execute(sql`select from queue_jobs where id = 2 for no key update`);
      expect(await endMembers(database.db, all, end)).toBe(3);
    });
    expect(await asked()).toEqual([1, 3, 4]);
    expect(await endMembers(database.db, all, end)).toBe(1);
  });

  test('are asked, but for one whose row refuses it, which is an error at the end', async () => {
    await database.client`alter table queue_jobs add constraint wanted check (id <> 3 or cancel_reason is null)`;
    try {
      await expect(endAllMembers(database.db, all, [1], undefined)).rejects.toThrow();
      expect(await asked()).toEqual([1, 2, 4]);
    } finally {
      await database.client`alter table queue_jobs drop constraint wanted`;
    }
  });

  test('are not asked once a redrive has taken that back, and one that waits for others goes on waiting', async () => {
    const { client } = database;
    await client`update queue_jobs set run_at = 'infinity', blockers = 1 where id = 2`;
    await client`update queue_batches set cancel_reason = null`;
    expect(await endMembers(database.db, all, { queue: 'q', ids: [1, 2], channel: undefined })).toBe(0);
    expect([...(await client`select run_at::text, blockers from queue_jobs where id = 2`)]).toEqual([
      { run_at: 'infinity', blockers: 1 },
    ]);
  });
});

describe('a job that is to end, and that no claim will take', () => {
  const error = { attempt: 1, name: 'ClaimRefusedError', message: 'no' };
  const ended = async () =>
    (
      await database.client`select job_id::int as id from queue_results where state = 'cancelled' order by id`
    ).map(({ id }) => id);

  test('ends although it is set aside, as a member and behind a failure', async () => {
    const { client, db } = database;
    await client`update queue_jobs set cancel_reason = 'no longer wanted' where id in (1, 9)`;
    await client`update queue_jobs set worker_id = null where id = 9`;
    await client`update queue_waits set policy = 'cancel'`;
    for (const id of [1, 9]) expect(await setAsideJob(db, all, { queue: 'q', id, error })).toBe(true);
    expect(await endUnclaimedJobs(db, all, [1], [1])).toEqual({ batchIds: new Set([1]), refusals: [] });
    expect(await ended()).toEqual([1, 9]);
  });

  test('ends although its worker has died as it had just put it back, for an hour', async () => {
    const { client, db } = database;
    await client`update queue_jobs set cancel_reason = 'no longer wanted' where id = 1`;
    await client`update queue_jobs set run_at = now() + interval '1 hour' where id in (1, 2)`;
    await endUnclaimedJobs(db, all, [1], [1]);
    expect(await ended()).toEqual([1]);
  });
});

test('a job that runs, and that was to end until a redrive, is woken by what it waits for', async () => {
  const { client, db } = database;
  // It is a member of batch 1, and waits for batch 2 beside something else.
  await client`update queue_jobs set batch_id = 1 where id = 9`;
  await client`insert into queue_batches (id, total, pending) overriding system value values (2, 1, 1)`;
  await client`insert into queue_waits (batch_id, job_id, queue, policy) values (2, 9, 'q', 'parent')`;
  const holder = { queue: 'q', workerId: 7 };
  const held = { id: 9, fence: 5 };
  expect(await waitForBatches(db, all, holder, { ...held, batchIds: [2], failFast: true }, 'briefly')).toBe(
    true,
  );
  expect(await endMembers(db, all, { queue: 'q', ids: [9], channel: undefined })).toBe(1);
  await spareMembers(db, all, { queue: 'q', ids: [9] });
  const transition = { type: 'park', delayMs: null, attempt: 0, error: null } as const;
  expect((await parkJobs(db, all, holder, [{ ...held, transition }])).parked.size).toBe(1);
  await client`insert into queue_tallies (batch_id, ended) values (2, 1)`;
  await foldTallies(db, all, { channel: undefined, locks: 'briefly' });
  expect([...(await client`select run_at <= now() as due from queue_jobs where id = 9`)]).toEqual([
    { due: true },
  ]);
});

test('a failure that is counted together with returns wakes what does not wait for the rest', async () => {
  const { client, db } = database;
  // Two have failed and one runs on. The two were put back, and one of them has failed again.
  await client`update queue_batches set cancel_reason = null, pending = 2, failed = 2`;
  await client`
    update queue_jobs set worker_id = null, claimed_at = null, run_at = 'infinity', blockers = 1 where id = 9`;
  await client`update queue_waits set policy = 'cancel'`;
  await client`insert into queue_tallies (batch_id, ended, failed) values (1, -1, -1), (1, -1, -1), (1, 1, 1)`;
  await foldTallies(db, all, { channel: undefined, locks: 'briefly' });
  expect([...(await client`select pending::int, failed::int from queue_batches`)]).toEqual([
    { pending: 3, failed: 1 },
  ]);
  expect(await asked()).toEqual([9]);
});

test.each([
  ['that was put back before its failure was counted', [1, -1]],
  ['that was put back', [-1]],
])('a member %s is no failure', async (_, failed) => {
  const { client, db } = database;
  const before = failed.length === 1 ? 1 : 0;
  await client`update queue_batches set cancel_reason = null, pending = 3, failed = ${before}`;
  await client`update queue_jobs set worker_id = null, run_at = 'infinity', blockers = 1 where id = 9`;
  await client`update queue_waits set policy = 'cancel'`;
  for (const n of failed)
    await client`insert into queue_tallies (batch_id, ended, failed) values (1, ${n}, ${n})`;
  await foldTallies(db, all, { channel: undefined, locks: 'briefly' });
  expect([...(await client`select failed::int from queue_batches`)]).toEqual([{ failed: 0 }]);
  expect(await asked()).toEqual([]);
});

test('of two recounts that have seen the same one adds what is missing', async () => {
  await database.client`delete from queue_jobs where id in (1, 2)`;
  const [one, two] = [await countBatch(database.db, all, 1), await countBatch(database.db, all, 1)];
  expect(one).toEqual({ batchId: 1, missing: 2, failed: 2, recountedAt: null });
  for (const members of [one, two]) if (members) await tallyMissing(database.db, all, members);
  expect(await database.client`select ended, failed from queue_tallies`).toEqual([{ ended: 2, failed: 2 }]);
  // They are tallied now, and so no longer missing.
  expect(await countBatch(database.db, all, 1)).toMatchObject({ missing: 0 });
});

describe('a member that has ended without a tally', () => {
  const end = async (id: number, state?: 'completed') => {
    const { client } = database;
    await client`delete from queue_jobs where id = ${id}`;
    if (state === undefined) return;
    await client`
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
        fence, metadata, created_at, run_at, batch_id)
      values (${id}, 'q', 'k', '1', ${state}, '[]', 1, 3, 5, 1, '{}', now(), now(), 1)`;
  };

  test('counts as completed if its result says so', async () => {
    await end(1, 'completed');
    await end(2);
    expect(await countBatch(database.db, all, 1)).toMatchObject({ missing: 2, failed: 1 });
  });

  test('counts as failed if another one that was counted has no result', async () => {
    await end(1, 'completed');
    await end(2);
    await database.client`insert into queue_tallies (batch_id, ended) values (1, 1)`;
    expect(await countBatch(database.db, all, 1)).toMatchObject({ missing: 1, failed: 1 });
  });
});

test('only the holder of a job lets it wait', async () => {
  const holder = { queue: 'q', workerId: 7 };
  const wait = { id: 9, fence: 5, batchIds: [1], failFast: true };
  expect(await waitForBatches(database.db, all, holder, { ...wait, fence: 4 }, 'briefly')).toBeUndefined();
  const other = { ...holder, workerId: 8 };
  expect(await waitForBatches(database.db, all, other, wait, 'briefly')).toBeUndefined();
  expect([...(await database.client`select waiting from queue_batches where waiting is not null`)]).toEqual(
    [],
  );
  const blockers = async () =>
    (await database.client`select blockers from queue_jobs where id = 9`)[0]?.blockers;
  expect(await blockers()).toBeNull();
  expect(await waitForBatches(database.db, all, holder, wait, 'briefly')).toBe(true);
  expect(await blockers()).toBe(-1);
});

test('an ended batch stays while one has results of it, or has waited for it, or for an hour', async () => {
  const { client } = database;
  const left = async () => {
    await deleteLeftBatches(database.db, all, { after: 0, until: undefined });
    return (
      await client`select (select count(*)::int from queue_batches) as batches,
      (select count(*)::int from queue_waits) as waits, (select count(*)::int from queue_tallies) as tallies`
    )[0];
  };
  await client`insert into queue_tallies (batch_id, ended) values (1, 1), (77, 1)`;
  // The tally of a batch that is gone goes at once.
  expect(await left()).toEqual({ batches: 1, waits: 1, tallies: 1 });
  await client`delete from queue_tallies`;
  await client`delete from queue_jobs where batch_id = 1`;
  await client`update queue_batches set pending = 0, ended_at = now()`;
  expect(await left()).toMatchObject({ batches: 1 });
  await client`update queue_batches set ended_at = now() - interval '2 hours'`;
  expect(await left()).toMatchObject({ batches: 1 });
  await client`delete from queue_jobs`;
  await client`
    insert into queue_results (job_id, queue, kind, state, errors, attempt, max_attempts, priority, fence,
      batch_id, metadata, created_at, run_at)
    values (1, 'q', 'k', 'completed', '[]', 1, 3, 5, 1, 1, '{}', now(), now())`;
  expect(await left()).toMatchObject({ batches: 1 });
  await client`delete from queue_results`;
  expect(await left()).toEqual({ batches: 0, waits: 0, tallies: 0 });
});
