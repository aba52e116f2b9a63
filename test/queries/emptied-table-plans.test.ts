import type { SQL } from 'drizzle-orm';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, describe, expect, test } from 'vitest';
import { claimJobsQuery } from '../../src/core/queries/claim/claim-jobs.ts';
import { findDueQuery } from '../../src/core/queries/claim/find-due.ts';
import { findDueIdsQuery } from '../../src/core/queries/claim/find-due-ids.ts';
import { findOverlookedQuery } from '../../src/core/queries/claim/find-overlooked.ts';
import { countSomeJobsQuery } from '../../src/core/queries/operate/count-some-jobs.ts';
import { findFirstDueQuery } from '../../src/core/queries/operate/find-first-due.ts';
import { findHeadsQuery } from '../../src/core/queries/operate/find-heads.ts';
import { findPassedOverQuery } from '../../src/core/queries/operate/find-passed-over.ts';
import { admitGroups, admitGroupsQuery } from '../../src/features/limits/queries/admit-groups.ts';
import { claimGroupedJobsQuery } from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { findGroupedDueIdsQuery } from '../../src/features/limits/queries/find-grouped-due-ids.ts';
import { findPlainJobsQuery } from '../../src/features/limits/queries/find-plain-jobs.ts';
import { noteForgottenGroupsQuery } from '../../src/features/limits/queries/note-groups.ts';
import { pruneGroupsQuery } from '../../src/features/limits/queries/prune-groups.ts';
import { sendSignalQuery } from '../../src/features/workflows/queries/send-signal.ts';
import { addControlTables, addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import type { PlanMode } from './support/explain.ts';
import { addWorkers, groupClaimOf, groupedTables } from './support/groups.ts';
import { ALL_BANDS, claimOf, tables } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';
import { looksOf } from './support/looks.ts';

/*
 * After a VACUUM of a table without rows that keeps its pages, Postgres expects one row of any condition. Of two
 * indexes it takes the one with fewer levels: among so many jobs that is the primary key, which has all of a queue.
 */

const database = useTestDatabase();
const JOBS = 50_000;
const GROUPS = 2_500;
/** Each statement reads less than the queue once. */
const MOST_ROWS = JOBS / 2;
const MODES: readonly PlanMode[] = ['force_custom_plan', 'force_generic_plan'];
let backend: Backend;
let workerId = 0;

beforeAll(async () => {
  await addControlTables(database);
  await addWorkflowTables(database);
  [backend] = await twoBackends(database);
  for (const table of ['queue_jobs', 'queue_groups', 'queue_notes', 'queue_workers']) {
    await database.client.unsafe(`alter table ${table} set (autovacuum_enabled = off)`);
  }
});

/** Fills the tables, empties them, and fills them again. */
async function refill(columns: string, values: string, { noted = false } = {}): Promise<void> {
  const { client } = database;
  const fill = async () => {
    await client.unsafe(`
      insert into queue_jobs (queue, kind, payload, max_attempts, priority, run_at, ${columns})
      select 'q', 'k', '{"orderId": 1}', 20, 5, now(), ${values} from generate_series(1, ${JOBS}) as n`);
    if (!noted) return;
    await client.unsafe(`
      insert into queue_notes (queue, due_at, group_keys)
      select 'q', now(), array_agg(group_key) from (
        select distinct group_key from queue_jobs
      ) as g group by hashtext(group_key) % 100`);
  };
  await client`truncate queue_jobs, queue_groups, queue_notes, queue_workers`;
  [workerId = 0] = await addWorkers(client);
  await fill();
  if (noted) while ((await admitGroups(database.db, groupedTables(), 'q')) > 0);
  for (const table of ['queue_jobs', 'queue_groups', 'queue_notes']) {
    await client.unsafe(`delete from ${table}`);
    await client.unsafe(`vacuum (truncate off) ${table}`);
    await client.unsafe(`analyze ${table}`);
  }
  await client`analyze queue_workers`;
  const [{ rows } = { rows: -1 }] = await client<{ rows: number }[]>`
    select reltuples::int4 as rows from pg_class where oid = 'queue_jobs'::regclass`;
  expect(rows).toBe(0);
  await fill();
}

async function expectFewRows(query: SQL, mode: PlanMode, most = MOST_ROWS): Promise<void> {
  expect((await looksOf(backend, query, mode)).rows).toBeLessThan(most);
}

describe('jobs in no group', () => {
  const bands = ALL_BANDS;
  const passed = bands.map(() => ({ floorMs: Date.now() + 60_000, endMs: Date.now() + 60_000 }));
  const look = { looks: [{ queue: 'q', floorMs: Number.NEGATIVE_INFINITY }], kinds: ['k'], horizonMs: 2_000 };
  const sweep = () => ({
    looks: [{ queue: 'q', passed, after: undefined }],
    kinds: ['other'],
    workerId,
    slice: 2_000,
  });
  const statements: Readonly<Record<string, () => SQL>> = {
    'a claim': () => claimJobsQuery(tables, claimOf({ limit: 20, bands })),
    'a claim by a plan that is kept': () =>
      claimJobsQuery(tables, claimOf({ limit: 20, bands, ifTableIs: 'grown' })),
    'a claim of what gone workers held': () =>
      claimJobsQuery(tables, claimOf({ limit: 20, bands, fromGoneWorkers: true })),
    'a look': () => findDueQuery(tables, look),
    'a look by a plan that is kept': () => findDueQuery(tables, { ...look, ifTableIs: 'grown' }),
    'a sweep': () => findOverlookedQuery(tables, sweep()),
    'a sweep by a plan that is kept': () => findOverlookedQuery(tables, { ...sweep(), ifTableIs: 'grown' }),
    'what a refused claim may have met': () =>
      findDueIdsQuery(tables, { queue: 'q', kinds: ['k'], bands, limit: 20, without: [] }),
    'the first due job': () => findFirstDueQuery(tables, { queue: 'q', priority: 5 }),
    'the heads': () => findHeadsQuery(tables, 1_000),
    'what is passed over': () => findPassedOverQuery(tables, 1_000),
    'a count of some': () => countSomeJobsQuery(tables, ['q']),
    'an adoption': () => findPlainJobsQuery(groupedTables(), 'q'),
    'a signal by unique key': () =>
      sendSignalQuery(
        { ...tables, ...workflowTables },
        {
          to: { queue: 'q', kind: 'k', uniqueKey: 'an order with a long number 7' },
          name: 's',
          signalId: 's',
          value: '1',
          key: undefined,
        },
      ),
  };
  beforeAll(() => refill('unique_key', `'an order with a long number ' || n`));

  describe.each(MODES)('%s', (mode) => {
    test.each(Object.entries(statements))('%s', async (_, statement) => {
      await expectFewRows(statement(), mode);
    });
  });
});

describe('jobs in groups', () => {
  const statements: Readonly<Record<string, () => SQL>> = {
    'the first groups are admitted': () => admitGroupsQuery(groupedTables(), 'q'),
    shares: () => claimGroupedJobsQuery(groupedTables(), groupClaimOf(workerId, { limit: 100 })),
    'in order': () =>
      claimGroupedJobsQuery(
        groupedTables('end'),
        groupClaimOf(workerId, { limit: 100, limits: { run: 50 } }),
      ),
    'of another kind': () =>
      claimGroupedJobsQuery(groupedTables(), groupClaimOf(workerId, { limit: 100, kinds: ['other'] })),
    'that is sought': () =>
      claimGroupedJobsQuery(
        groupedTables(),
        groupClaimOf(workerId, { limit: 100, kinds: ['other'], seeks: true }),
      ),
    'by a plan that is kept': () =>
      claimGroupedJobsQuery(groupedTables(), groupClaimOf(workerId, { ifTablesAre: 'grown', groups: 8 })),
    'what a refused claim may have met': () =>
      findGroupedDueIdsQuery(groupedTables(), groupClaimOf(workerId, { limit: 20 })),
    'the look for forgotten groups': () => noteForgottenGroupsQuery(groupedTables(), 'q', ''),
    'the removal of groups without jobs': () =>
      pruneGroupsQuery(groupedTables(), { queue: 'q', after: '', ratePerMs: undefined }),
  };
  beforeAll(() => refill('group_key', `'a tenant with a long name ' || n % ${GROUPS}`, { noted: true }));

  describe('before their first claim', () => {
    test.each(Object.entries(statements))('%s', async (_, statement) => {
      await expectFewRows(statement(), 'force_custom_plan');
    });
  });

  describe('in the ring', () => {
    beforeAll(async () => {
      while ((await admitGroups(database.db, groupedTables(), 'q')) > 0);
      await database.client`update queue_groups set ready_at = '-infinity'`;
    });
    test.each(Object.entries(statements))('%s', async (name, statement) => {
      // Among all groups: it reads the jobs of each.
      const most = name === 'that is sought' ? 2 * JOBS : MOST_ROWS;
      await expectFewRows(statement(), 'force_custom_plan', most);
    });
  });
});
