import type { SQL } from 'drizzle-orm';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Transition } from '../../src/core/job/transition.ts';
import { releaseJobsQuery } from '../../src/core/queries/hold/release-jobs.ts';
import { redriveJobsQuery } from '../../src/core/queries/operate/redrive-jobs.ts';
import { finishJobsQuery } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobsQuery } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { admitGroups, admitGroupsQuery } from '../../src/features/limits/queries/admit-groups.ts';
import {
  claimGroupedJobs,
  claimGroupedJobsQuery,
  FEW,
} from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import {
  noteForgottenGroupsQuery,
  noteFreedGroupsQuery,
} from '../../src/features/limits/queries/note-groups.ts';
import { pruneGroupsQuery } from '../../src/features/limits/queries/prune-groups.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { explain, nodesOf, type PlanNode } from './support/explain.ts';
import { addGrouped, addWorkers, groupClaimOf, groupedTables } from './support/groups.ts';
import { fillJobs } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';

/** What a node has looked at in vain, once for each of its loops. */
interface Looks extends PlanNode {
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
}

const database = useTestDatabase();
const tables = groupedTables();
const JOBS = 3_000;
/** Where all were compared with all, it would be thousands. */
const MOST_ROWS = 200 * JOBS;
let backend: Backend;
let worker = 0;

beforeAll(async () => {
  await addControlTables(database);
  [backend] = await twoBackends(database);
  for (const table of ['queue_jobs', 'queue_results', 'queue_groups', 'queue_holds', 'queue_notes']) {
    await database.client.unsafe(`alter table ${table} set (autovacuum_enabled = off)`);
  }
});

/** Gathers statistics while there are a few rows, and adds many. */
async function fill(groups: number): Promise<void> {
  await database.client.unsafe(
    'truncate queue_jobs, queue_results, queue_groups, queue_holds, queue_notes, queue_workers',
  );
  [worker = 0] = await addWorkers(database.client);
  const jobs = (count: number, queue: string) =>
    Array.from({ length: count }, (_, n) => ({ queue, group: `key ${n % groups}` }));
  await addGrouped(database.client, jobs(3, 'another'));
  await database.client`
    insert into queue_groups (queue, group_key, ready_at) values ('another', 'key 0', now())`;
  await database.client`analyze`;
  await addGrouped(database.client, jobs(JOBS, 'q'));
}

/** The rows of the groups are made, and all of them have due jobs. */
async function meetAll(): Promise<void> {
  while ((await admitGroups(database.db, tables, 'q')) > 0);
  await database.client`update queue_groups set ready_at = '-infinity' where queue = 'q'`;
}

/** No node of the plan has compared all rows of one side with all of the other. */
async function expectNoLoops(
  query: SQL,
  mostRows = MOST_ROWS,
  planning: Parameters<typeof explain>[2] = 'force_custom_plan',
): Promise<readonly PlanNode[]> {
  const nodes = nodesOf(await explain(backend, query, planning)) as readonly Looks[];
  const looked = nodes.map((node) => {
    const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
    return [node['Node Type'], (node['Actual Rows'] + removed) * node['Actual Loops']] as const;
  });
  expect(looked.filter(([, rows]) => rows > mostRows)).toEqual([]);
  return nodes;
}

const WAYS = [
  ['shares', undefined, {}],
  ['many at once', undefined, { concurrency: JOBS }],
  ['one after the other', 'end', { run: 50 }],
  ['a rate', undefined, { rate: { limit: JOBS, perMs: 60_000 } }],
] as const;

const finish = { type: 'finish', state: 'completed', output: '1', error: null, keepResult: true } as const;
const error = { attempt: 1, name: 'Error', message: 'no' };
const discard = { type: 'finish', state: 'discarded', output: null, error, keepResult: true } as const;
const retry = { type: 'reschedule', delayMs: 60_000, attempt: 1, error } as const;

describe.each([10, JOBS])('with the statistics of a few rows, the jobs of %i groups', (groups) => {
  describe('before their first claim', () => {
    beforeAll(() => fill(groups));

    test('are admitted', async () => {
      await expectNoLoops(admitGroupsQuery(tables, 'q'));
    });

    describe.each(WAYS)('%s', (_, serial, limits) => {
      test('are claimed from their notes', async () => {
        const claim = groupClaimOf(worker, { limit: JOBS, limits });
        await expectNoLoops(claimGroupedJobsQuery(groupedTables(serial), claim));
      });
    });

    test('are claimed once they are admitted', async () => {
      while ((await admitGroups(database.db, tables, 'q')) > 0);
      await expectNoLoops(claimGroupedJobsQuery(tables, groupClaimOf(worker, { limit: JOBS })));
    });
  });

  describe('met by claims', () => {
    beforeAll(async () => {
      await fill(groups);
      await meetAll();
    });

    describe.each(WAYS)('%s', (_, serial, limits) => {
      test('are claimed', async () => {
        const claim = groupClaimOf(worker, { limit: JOBS, limits });
        await expectNoLoops(claimGroupedJobsQuery(groupedTables(serial), claim));
      });

      test.each(['k', 'another'])('are sought: %s', async (kind) => {
        const claim = groupClaimOf(worker, { limits, kinds: [kind], seeks: true });
        await expectNoLoops(claimGroupedJobsQuery(groupedTables(serial), claim));
      });
    });

    describe('noted', () => {
      beforeAll(async () => {
        await database.client`update queue_groups set ready_at = 'infinity' where queue = 'q'`;
        await database.client`
          insert into queue_notes (queue, due_at, group_keys)
          select queue, now(), array_agg(group_key) from (
            select queue, group_key, row_number() over () / 20 as part from queue_groups where queue = 'q'
          ) as g
          group by queue, part`;
      });

      test('are admitted', async () => {
        await expectNoLoops(admitGroupsQuery(tables, 'q'));
      });

      test.each(WAYS)('are claimed: %s', async (_, serial, limits) => {
        const claim = groupClaimOf(worker, { limit: JOBS, limits });
        await expectNoLoops(claimGroupedJobsQuery(groupedTables(serial), claim));
      });
    });

    test('are looked for by the upkeep', async () => {
      await expectNoLoops(noteFreedGroupsQuery(tables, 'q'));
      // It looks at a thousand groups.
      await expectNoLoops(noteForgottenGroupsQuery(tables, 'q', ''), 100 * Math.min(groups, 1_000));
      await expectNoLoops(pruneGroupsQuery(tables, { queue: 'q', after: '', ratePerMs: undefined }));
    });
  });

  describe('held', () => {
    let held: readonly { readonly id: number; readonly fence: number }[];
    const of = <T extends Transition>(transition: T) =>
      held.map(({ id, fence }) => ({ id, fence, transition }));

    beforeAll(async () => {
      await fill(groups);
      await meetAll();
      const claim = groupClaimOf(worker, { limit: JOBS });
      held = (await claimGroupedJobs(database.db, tables, claim)).jobs;
      expect(held.length).toBeGreaterThan(JOBS / 2);
    });

    test.each([undefined, 'end', 'success'] as const)('end, serial: %s', async (serial) => {
      const each = groupedTables(serial);
      const holder = { queue: 'q', workerId: worker };
      await expectNoLoops(finishJobsQuery(each, holder, of(finish)));
      await expectNoLoops(finishJobsQuery(each, holder, of(discard)));
      await expectNoLoops(rescheduleJobsQuery(each, holder, of(retry)));
      await expectNoLoops(releaseJobsQuery(each, { ...holder, mayHaveBegun: true }, held));
    });

    test('are redriven once they were discarded', async () => {
      await database.client`
        insert into queue_results (job_id, queue, kind, payload, priority, run_at, attempt, max_attempts, fence, group_key,
          state, created_at, claimed_at, finished_at, errors, metadata)
        select id, queue, kind, payload, priority, run_at, attempt, max_attempts, fence, group_key,
          'discarded', created_at, claimed_at, now(), errors, metadata from queue_jobs where queue = 'q'`;
      await database.client`delete from queue_jobs`;
      for (const serial of [undefined, 'success'] as const) {
        await expectNoLoops(redriveJobsQuery(groupedTables(serial), { queue: 'q' }));
      }
    });
  });
});

describe.each([1, 10])('by a plan that is kept, among the jobs of others, those of %i groups', (groups) => {
  beforeAll(async () => {
    await fill(groups);
    await fillJobs(database.client, 20_000);
  });

  describe.each(['noted', 'in the ring', 'held'])('%s', (state) => {
    beforeAll(async () => {
      if (state === 'in the ring') await meetAll();
      if (state === 'held') {
        const claim = groupClaimOf(worker, { limit: JOBS / 2 });
        expect((await claimGroupedJobs(database.db, tables, claim)).jobs).toHaveLength(JOBS / 2);
      }
    });

    test.each(WAYS)('are claimed: %s', async (_, serial, limits) => {
      const claim = groupClaimOf(worker, { limit: JOBS, groups: FEW.grown, limits, ifTablesAre: 'grown' });
      const query = claimGroupedJobsQuery(groupedTables(serial), claim);
      const nodes = await expectNoLoops(query, MOST_ROWS, 'force_generic_plan');
      const claimed = nodes.find(
        (node) => node['Node Type'] === 'ModifyTable' && node['Relation Name'] === 'queue_jobs',
      );
      const isOpen = state !== 'held' || serial === undefined;
      expect((claimed?.['Actual Rows'] ?? 0) > 0).toBe(isOpen);
    });
  });
});
