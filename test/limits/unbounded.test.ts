import { sql } from 'drizzle-orm';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { ClaimedJob } from '../../src/core/queries/claim/claim-jobs.ts';
import { cancelJob } from '../../src/core/queries/settle/cancel-job.ts';
import { finishJobs, finishJobsQuery } from '../../src/core/queries/settle/finish-jobs.ts';
import {
  addGrouped,
  addWorkers,
  claimGroups,
  clearGroups,
  groupedTables,
  groupRows,
} from '../queries/support/groups.ts';
import { idsOf } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 4 });
beforeAll(() => addControlTables(database));
beforeEach(() => clearGroups(database.client));

const ONE = { limits: { concurrency: 1 } };
const finishes = (jobs: readonly ClaimedJob[]) =>
  jobs.map(({ id, fence }) => ({
    id,
    fence,
    transition: {
      type: 'finish' as const,
      state: 'completed' as const,
      keepResult: false as const,
      output: null,
      error: null,
    },
  }));
const notes = async () => {
  const [row] = await database.client<{ n: number }[]>`select count(*)::int as n from queue_notes`;
  return row?.n;
};

test('where groups take turns alone, the end of a job leaves no note', async () => {
  const [worker = 0] = await addWorkers(database.client);
  const [first, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
  const { jobs } = await claimGroups(database.db, worker, { limit: 1 });
  expect([idsOf(jobs), await notes()]).toEqual([[first], 0]);
  await finishJobs(database.db, groupedTables(), { queue: 'q', workerId: worker }, finishes(jobs));
  expect(await notes()).toBe(0);
  // The group is still in the ring, and comes back to it with its next job.
  const { jobs: next } = await claimGroups(database.db, worker);
  await finishJobs(database.db, groupedTables(), { queue: 'q', workerId: worker }, finishes(next));
  expect([idsOf(next), (await groupRows(database.client)).a?.ready]).toEqual([[second], 'infinity']);
  const [third] = await addGrouped(database.client, [{ group: 'a' }]);
  expect(idsOf((await claimGroups(database.db, worker)).jobs)).toEqual([third]);
});

test('where groups take turns alone, an end hashes the groups that are bounded, and joins none', async () => {
  const jobs = Array.from({ length: 500 }, (_, id) => ({ id, fence: 1 }) as ClaimedJob);
  const query = finishJobsQuery(groupedTables(), { queue: 'q', workerId: 1 }, finishes(jobs));
  const rows = await database.db.execute<{ 'QUERY PLAN': string }>(sql`explain ${query}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toContain('queue_groups');
  expect(plan).not.toMatch(/Join Filter: .*ended_group/);
});

test('an end of a process that knows no limit leaves a note where another one has one', async () => {
  const [worker = 0, other = 0] = await addWorkers(database.client, 2);
  const [first, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
  const { jobs } = await claimGroups(database.db, worker, { limit: 1 });
  // As in a deployment that adds the limit.
  expect((await claimGroups(database.db, other, ONE)).jobs).toEqual([]);
  await finishJobs(database.db, groupedTables(), { queue: 'q', workerId: worker }, finishes(jobs));
  expect([idsOf(jobs), await notes()]).toEqual([[first], 1]);
  expect(idsOf((await claimGroups(database.db, other, ONE)).jobs)).toEqual([second]);
});

test('a claim with a new limit looks again for ends that were under way and left no note', async () => {
  const [worker = 0] = await addWorkers(database.client);
  const [first, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
  const { jobs } = await claimGroups(database.db, worker, { limit: 1 });
  expect(idsOf(jobs)).toEqual([first]);
  await database.db.transaction(
    async (tx) => {
      // Its snapshot is from before the claim that parks the group.
      await tx.execute('select');
      expect((await claimGroups(database.db, worker, ONE)).jobs).toEqual([]);
      // After a second it is looked at again, whatever becomes of the end.
      const [row] = await database.client<{ ms: number }[]>`
        select extract(epoch from ready_at - bounded_since)::float8 * 1000 as ms from queue_groups`;
      expect(row?.ms).toBe(1_000);
      await finishJobs(tx, groupedTables(), { queue: 'q', workerId: worker }, finishes(jobs));
    },
    { isolationLevel: 'repeatable read' },
  );
  expect(await notes()).toBe(0);
  const next = await until(async () => {
    const { jobs } = await claimGroups(database.db, worker, ONE);
    return jobs.length > 0 ? idsOf(jobs) : undefined;
  });
  expect(next).toEqual([second]);
  // From here on ends leave notes, so that a group at its limit waits for them alone.
  await addGrouped(database.client, [{ group: 'a' }]);
  expect((await claimGroups(database.db, worker, ONE)).jobs).toEqual([]);
  expect((await groupRows(database.client)).a?.ready).toBe('infinity');
});

const TWO = { limits: { concurrency: 2 } };

test('an end that was under way frees its slot, whatever else has ended and begun meanwhile', async () => {
  const [worker = 0] = await addWorkers(database.client);
  const ids = await addGrouped(
    database.client,
    Array.from({ length: 4 }, () => ({ group: 'a' })),
  );
  const { jobs } = await claimGroups(database.db, worker, { limit: 2 });
  expect(idsOf(jobs)).toEqual(ids.slice(0, 2));
  const holder = { queue: 'q', workerId: worker };
  await database.db.transaction(
    async (tx) => {
      await tx.execute('select');
      expect((await claimGroups(database.db, worker, TWO)).jobs).toEqual([]);
      await finishJobs(database.db, groupedTables(), holder, finishes(jobs.slice(1)));
      expect(idsOf((await claimGroups(database.db, worker, TWO)).jobs)).toEqual([ids[2]]);
      await finishJobs(tx, groupedTables(), holder, finishes(jobs.slice(0, 1)));
    },
    { isolationLevel: 'repeatable read' },
  );
  const next = await until(async () => {
    const { jobs } = await claimGroups(database.db, worker, TWO);
    return jobs.length > 0 ? idsOf(jobs) : undefined;
  });
  expect(next).toEqual([ids[3]]);
});

test('a cancel leaves a note: the transaction of the app may stay open for longer than that', async () => {
  const [worker = 0] = await addWorkers(database.client);
  const [first = 0, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
  await claimGroups(database.db, worker, { limit: 1 });
  await database.db.transaction(async (tx) => {
    const reason = { attempt: 1, name: 'JobCancelledError', message: 'no' };
    const force = { channel: undefined };
    expect(await cancelJob(tx, groupedTables(), { queue: 'q', id: first, reason, force })).toBe(true);
    // Until it waits for the end of the job alone.
    await until(async () => {
      expect((await claimGroups(database.db, worker, ONE)).jobs).toEqual([]);
      return (await groupRows(database.client)).a?.ready === 'infinity';
    });
  });
  expect(idsOf((await claimGroups(database.db, worker, ONE)).jobs)).toEqual([second]);
});
