import type { SQL } from 'drizzle-orm';
import { beforeAll, describe, expect, test } from 'vitest';
import { countBatchQuery } from '../../src/features/batches/queries/count-batch.ts';
import { endMembersQuery } from '../../src/features/batches/queries/end-members.ts';
import { findEndsQuery } from '../../src/features/batches/queries/find-ends.ts';
import { findFlowBatchesQuery } from '../../src/features/batches/queries/find-flow-batches.ts';
import { findFlowGroupsQuery } from '../../src/features/batches/queries/find-flow-groups.ts';
import { findFlowOfJobQuery } from '../../src/features/batches/queries/find-flow-of-job.ts';
import { findFlowsQuery } from '../../src/features/batches/queries/find-flows.ts';
import { findGroupJobsQuery } from '../../src/features/batches/queries/find-group-jobs.ts';
import { findMembersQuery } from '../../src/features/batches/queries/find-members.ts';
import { foldTalliesQuery } from '../../src/features/batches/queries/fold-tallies.ts';
import { waitForBatchesQuery } from '../../src/features/batches/queries/wait-for-batches.ts';
import { queueBatches, queueTallies, queueWaits } from '../../src/features/workflows/schema/index.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf } from './support/explain.ts';
import { tables } from './support/jobs.ts';

const database = useTestDatabase({ max: 1 });
const all = { ...tables, queueBatches, queueWaits, queueTallies };
const BATCHES = 20_000;

beforeAll(async () => {
  await addWorkflowTables(database);
  const { client } = database;
  // Known to the planner as empty, which is the worst that it can know.
  await client.unsafe(
    'analyze queue_jobs; analyze queue_batches; analyze queue_waits; analyze queue_tallies',
  );
  // 300,000 jobs wait, 20,000 of them for a batch of one job each; the first 200 have just ended.
  await client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at, blockers) overriding system value
    select n, 'q', 'k', '1', 20, 'infinity', 1 from generate_series(1, 300000) as n`;
  await client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id) overriding system value
    select 1000000 + n, 'q', 'k', '1', 20, n from generate_series(201, ${BATCHES}::int) as n`;
  await client`
    insert into queue_batches (id, total, pending) overriding system value
    select n, 1, 1 from generate_series(1, ${BATCHES}::int) as n`;
  await client`
    insert into queue_waits (batch_id, job_id, queue, policy)
    select n, n, 'q', 'run' from generate_series(1, ${BATCHES}::int) as n`;
  await client`
    insert into queue_tallies (batch_id, ended) select n, 1 from generate_series(1, 200) as n`;
  await client`update queue_batches set flow_id = 600 where id between 600 and 603`;
  await client`update queue_batches set cancel_reason = 'no' where id = 500`;
}, 300_000);

const ids = (count: number) => Array.from({ length: count }, (_, at) => at + 1);
const holder = { queue: 'q', workerId: 1 };
const wait = { id: 1, fence: 1, batchIds: [300, 301], failFast: true };

const scope = { queues: undefined, own: [] };
const group = {
  ...{ batchId: 600, kind: 'k', after: [], state: undefined, above: 0, limit: 101, scope, excerpt: 100 },
};

const listed = { state: undefined, before: undefined, limit: 51, searchLimit: 10_000 };

/** Each with the pages that it may look at: a few for every row that it is about. */
const statements: Readonly<Record<string, readonly [SQL, pages: number]>> = {
  'a fold of 200 batches': [foldTalliesQuery(all, { ids: ids(200), channel: 'x', locks: 'wait' }), 200 * 60],
  'a fold of what there is': [foldTalliesQuery(all, { channel: 'x', locks: 'wait' }), 200 * 60],
  'a fold of one batch': [foldTalliesQuery(all, { ids: [1], channel: 'x', locks: 'wait' }), 250],
  'a wait for two batches': [waitForBatchesQuery(all, holder, wait, 'wait'), 100],
  'the count of a batch': [countBatchQuery(all, 300), 60],
  'the ends of two batches': [findEndsQuery(all, [300, 301], undefined), 60],
  'the members that are to end': [findMembersQuery(all, [500], 1_000), 60],
  'the graph of a flow': [findFlowGroupsQuery(all, 600, scope), 200],
  'its batches': [findFlowBatchesQuery(all, 600), 20],
  'the flow of a job': [findFlowOfJobQuery(all, 1_000_600), 40],
  'a page of flows': [findFlowsQuery(all, { ...listed, before: 601 }), 60],
  'a search for failed flows': [findFlowsQuery(all, { ...listed, state: 'failed', before: 601 }), 40],
  'the jobs of a group': [findGroupJobsQuery(all, group), 60],
  'their end': [endMembersQuery(all, { queue: 'q', ids: [1_000_500], channel: 'x' }), 100],
};

describe.each(['stale statistics', 'after an ANALYZE'])('with %s, beside 300,000 jobs that wait', (when) => {
  beforeAll(async () => {
    if (when !== 'stale statistics') {
      await database.client.unsafe(
        'analyze queue_jobs; analyze queue_batches; analyze queue_waits; analyze queue_tallies',
      );
    }
  });

  test.each(Object.entries(statements))('%s reads what it is about', async (_, [query, pages]) => {
    const plan = await explain(database, query, 'force_custom_plan');
    const scanned = nodesOf(plan).filter(
      (node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'queue_jobs',
    );
    expect(scanned).toEqual([]);
    expect(buffersOf(plan)).toBeLessThan(pages);
  });

  test('a fold looks for each job by its key alone', async () => {
    const [query] = statements['a fold of 200 batches'] ?? [];
    if (query === undefined) throw new Error('no such statement');
    const plan = await explain(database, query, 'force_custom_plan');
    const conditions = nodesOf(plan).flatMap((node) => node['Index Cond'] ?? []);
    const ofJobs = nodesOf(plan).filter((node) => node['Index Name'] === 'queue_jobs_pkey');
    expect(ofJobs.length).toBeGreaterThan(0);
    expect(conditions.filter((condition) => /i(_\d+)?\.id.*ANY/.test(condition))).toEqual([]);
  });
});
