import type { SQL } from 'drizzle-orm';
import { beforeAll, describe, expect, test } from 'vitest';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { countBatchQuery } from '../../src/features/batches/queries/count-batch.ts';
import { countOpenFlowsQuery } from '../../src/features/batches/queries/count-open-flows.ts';
import { endMembersQuery } from '../../src/features/batches/queries/end-members.ts';
import { findEndsQuery } from '../../src/features/batches/queries/find-ends.ts';
import { findFlowQuery } from '../../src/features/batches/queries/find-flow.ts';
import { findFlowBatchesQuery } from '../../src/features/batches/queries/find-flow-batches.ts';
import { findFlowGroupsQuery } from '../../src/features/batches/queries/find-flow-groups.ts';
import { findFlowOfJobQuery } from '../../src/features/batches/queries/find-flow-of-job.ts';
import { findFlowsQuery } from '../../src/features/batches/queries/find-flows.ts';
import { findGroupJobsQuery } from '../../src/features/batches/queries/find-group-jobs.ts';
import { findLiveMembersQuery } from '../../src/features/batches/queries/find-live-members.ts';
import { findMembersQuery } from '../../src/features/batches/queries/find-members.ts';
import { findTalliedQuery } from '../../src/features/batches/queries/find-tallied.ts';
import { findToldMembersQuery } from '../../src/features/batches/queries/find-told-members.ts';
import { findUnclaimedQuery } from '../../src/features/batches/queries/find-unclaimed.ts';
import { findUnwokenQuery } from '../../src/features/batches/queries/find-unwoken.ts';
import { foldTalliesQuery } from '../../src/features/batches/queries/fold-tallies.ts';
import { isBlockedQuery } from '../../src/features/batches/queries/is-blocked.ts';
import { lockFlowQuery } from '../../src/features/batches/queries/lock-flow.ts';
import { reopenBatchesQuery } from '../../src/features/batches/queries/reopen-batches.ts';
import { reopenReturnedQuery } from '../../src/features/batches/queries/reopen-returned.ts';
import { waitForBatchesQuery } from '../../src/features/batches/queries/wait-for-batches.ts';
import { wakeWaitersQuery } from '../../src/features/batches/queries/wake-waiters.ts';
import { TalliedEnds } from '../../src/features/batches/sql/tallied-ends.ts';
import { copyStepsQuery } from '../../src/features/workflows/queries/copy-steps.ts';
import { findJobWithStepQuery } from '../../src/features/workflows/queries/find-job-with-step.ts';
import { findMailboxesQuery } from '../../src/features/workflows/queries/find-mailboxes.ts';
import { findStepsQuery } from '../../src/features/workflows/queries/find-steps.ts';
import { findWaitingJobQuery } from '../../src/features/workflows/queries/find-waiting-job.ts';
import { finishWaitingJobQuery } from '../../src/features/workflows/queries/finish-waiting-job.ts';
import { forgetStepsQuery } from '../../src/features/workflows/queries/forget-steps.ts';
import { lockMailboxesQuery } from '../../src/features/workflows/queries/lock-mailboxes.ts';
import { receiveSignalQuery } from '../../src/features/workflows/queries/receive-signal.ts';
import { recordOneStepQuery } from '../../src/features/workflows/queries/record-one-step.ts';
import { recordStepsQuery } from '../../src/features/workflows/queries/record-steps.ts';
import { sendSignalQuery } from '../../src/features/workflows/queries/send-signal.ts';
import { showStepsQuery } from '../../src/features/workflows/queries/show-steps.ts';
import * as workflowTables from '../../src/features/workflows/schema/index.ts';
import { queueBatches, queueTallies, queueWaits } from '../../src/features/workflows/schema/index.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf, type PlanMode } from './support/explain.ts';
import { tables } from './support/jobs.ts';

const database = useTestDatabase({ max: 1 });
const all = { ...tables, queueBatches, queueWaits, queueTallies };
const workflows = inContext({ ...tables, ...workflowTables }, { members: new TalliedEnds(all) });
const TABLES = ['jobs', 'results', 'batches', 'waits', 'tallies', 'steps', 'mailboxes'];
const analyze = TABLES.map((table) => `analyze queue_${table}`).join(';');
const BATCHES = 20_000;
/** What no statement may read from end to end. */
const LARGE = ['queue_jobs', 'queue_results', 'queue_steps', 'queue_mailboxes'];

beforeAll(async () => {
  await addWorkflowTables(database);
  const { client } = database;
  // Known to the planner as empty, which is the worst that it can know.
  await client.unsafe(analyze);
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
  // Ten steps of each of 10,000 jobs, a child among them, and what they have received; 50,000 have ended.
  await client`
    insert into queue_steps (job_id, queue, name, kind, signal, output, fence, started_at, ended_at)
    select job, 'q', 's' || n, case n when 3 then 'enqueue' else 'run' end, case n when 5 then 'answer' end,
      jsonb_build_object('batch', job), 1, now() + n * interval '1 s', now() + n * interval '1 s'
    from generate_series(1, 10000) as job, generate_series(1, 10) as n`;
  await client`
    insert into queue_mailboxes (job_id, queue, name) select n, 'q', 'answer' from generate_series(1, 10000) as n`;
  await client`
    insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      fence, metadata, created_at, run_at)
    select 2000000 + n, 'q', 'k', '1', 'completed', '[]', 1, 3, 5, 1, '{}', now(), now()
    from generate_series(1, 50000) as n`;
  await client`update queue_jobs set unique_key = 'key ' || id where id <= 10000`;
  await client`
    update queue_jobs set worker_id = 1, fence = 1, claimed_at = now() where id between 9100 and 9299`;
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
const finish = (to: Parameters<typeof finishWaitingJobQuery>[1]['to']) =>
  finishWaitingJobQuery(workflows, { to, output: '1', keepResult: true });

/** Each with the pages that it may look at: a few for every row that it is about. */
const statements: Readonly<Record<string, readonly [SQL, pages: number]>> = {
  'a fold of 200 batches': [foldTalliesQuery(all, { ids: ids(200), channel: 'x', locks: 'wait' }), 200 * 60],
  'a fold of what there is': [foldTalliesQuery(all, { channel: 'x', locks: 'wait' }), 200 * 60],
  'a fold of one batch': [foldTalliesQuery(all, { ids: [1], channel: 'x', locks: 'wait' }), 250],
  'a wait for two batches': [waitForBatchesQuery(all, holder, wait, 'wait'), 100],
  'the members of two batches that live': [findLiveMembersQuery(all, [300, 301]), 60],
  'a wait for one of two batches that is back': [reopenReturnedQuery(all, holder, wait, 'wait'), 100],
  'the count of a batch': [countBatchQuery(all, 300), 60],
  'the ends of two batches': [findEndsQuery(all, [300, 301], undefined), 60],
  'the members that are to end': [findMembersQuery(all, [500], 0), 60],
  'a flow': [findFlowQuery(all, 600), 20],
  'the batches of a flow that are locked': [lockFlowQuery(all, 600), 100],
  'its members that were to end': [findToldMembersQuery(all, 600), 60],
  'the batches of a flow that is redriven': [reopenBatchesQuery(all, 600), 100],
  'those whose waits are over': [findUnwokenQuery(all, [300, 301], 0), 60],
  'those that are to end and unclaimed': [findUnclaimedQuery(all, [300, 301], [500], 0), 100],
  'what makes them due': [wakeWaitersQuery(all, { queue: 'q', ids: [300, 301], channel: 'x' }), 100],
  'the finish of a job that waits': [finish({ queue: 'q', id: 9_000 }), 120],
  'the finish of one with a key': [finish({ queue: 'q', kind: 'k', uniqueKey: 'key 9001' }), 120],
  'whether it waits': [findWaitingJobQuery(workflows, { queue: 'q', id: 9_002 }), 30],
  'what is forked of a live job': [findJobWithStepQuery(workflows, 9_003, 's4'), 40],
  'what is forked of one that has ended': [findJobWithStepQuery(workflows, 2_000_500, 's4'), 40],
  'the steps of a fork': [copyStepsQuery(workflows, { queue: 'q', id: 9_003, from: 's8', to: 250_000 }), 250],
  'what a redrive from a step forgets': [
    forgetStepsQuery(workflows, { queue: 'q', id: 9_003, from: 's5' }),
    120,
  ],
  'what it locks before': [lockMailboxesQuery(workflows, { queue: 'q', id: 9_003 }), 20],
  'the graph of a flow': [findFlowGroupsQuery(all, 600, scope), 200],
  'its batches': [findFlowBatchesQuery(all, 600), 20],
  'the flow of a job': [findFlowOfJobQuery(all, 1_000_600), 40],
  'a page of flows': [findFlowsQuery(all, { ...listed, before: 601 }), 60],
  'a search for failed flows': [findFlowsQuery(all, { ...listed, state: 'failed', before: 601 }), 40],
  'the jobs of a group': [findGroupJobsQuery(all, group), 60],
  'whether one may begin': [isBlockedQuery(all, { queue: 'q', id: 9_000 }), 20],
  // 10,000 of the open ones: a few pages each for the next job, the batch, and what waits for it.
  'the open flows': [countOpenFlowsQuery(all), 10_000 * 12],
  'their end': [endMembersQuery(all, { queue: 'q', ids: [1_000_500], channel: 'x' }), 100],
};

/** These are held, and have ten steps each. */
const heldIds = Array.from({ length: 200 }, (_, at) => 9_100 + at);
const step = { fence: 1, kind: 'run', output: '{}', tookMs: 1, ended: true } as const;
const wanted = { id: 9_100, fence: 1, name: 'answer', signal: 'answer', at: 0, timeoutMs: 1_000 };
const signal = { name: 'answer', signalId: 'one', value: '1', key: undefined };
const ofSteps: Readonly<Record<string, readonly [SQL, pages: number]>> = {
  'the load of the steps of a job': [findStepsQuery(workflows, { ids: [9_100], queue: 'q' }), 20],
  'the steps for a page': [showStepsQuery(workflows, { id: 9_100, queue: 'q', cut: 1_000, limit: 200 }), 20],
  'its mailboxes': [findMailboxesQuery(workflows, 9_100), 10],
  'the record of one step': [
    recordOneStepQuery(workflows, holder, { ...step, id: 9_100, name: 'new' }, 'briefly'),
    60,
  ],
  'the record of one step again': [
    recordOneStepQuery(workflows, holder, { ...step, id: 9_100, name: 's2' }, 'briefly'),
    60,
  ],
  'the record of 200 steps': [
    recordStepsQuery(
      workflows,
      holder,
      heldIds.map((id) => ({ ...step, id, name: 'new' })),
      'briefly',
    ),
    200 * 40,
  ],
  'the receipt of a signal': [receiveSignalQuery(workflows, holder, wanted, 'briefly'), 100],
  'the send of a signal': [sendSignalQuery(workflows, { ...signal, to: { queue: 'q', id: 9_100 } }), 60],
  'the send of a signal once, by a key': [
    sendSignalQuery(workflows, { ...signal, to: { queue: 'q', kind: 'k', uniqueKey: 'key 9100' }, key: 'x' }),
    60,
  ],
};

describe.each(['stale statistics', 'after an ANALYZE'])('with %s, beside 300,000 jobs that wait', (when) => {
  beforeAll(async () => {
    if (when !== 'stale statistics') {
      await database.client.unsafe(analyze);
    }
  });

  test.each(Object.entries(statements))('%s reads what it is about', async (_, [query, pages]) => {
    const plan = await explain(database, query, 'force_custom_plan');
    const scanned = nodesOf(plan).filter(
      (node) => node['Node Type'] === 'Seq Scan' && LARGE.includes(String(node['Relation Name'])),
    );
    expect(scanned).toEqual([]);
    expect(buffersOf(plan)).toBeLessThan(pages);
  });

  describe.each<PlanMode>(['force_custom_plan', 'force_generic_plan'])('by %s', (mode) => {
    test.each(Object.entries(ofSteps))('%s reads what it is about', async (_, [query, pages]) => {
      const plan = await explain(database, query, mode);
      const scanned = nodesOf(plan).filter(
        (node) => node['Node Type'] === 'Seq Scan' && LARGE.includes(String(node['Relation Name'])),
      );
      expect(scanned).toEqual([]);
      expect(buffersOf(plan)).toBeLessThan(pages);
      // One that finds no held job would read nothing.
      expect(plan['Actual Rows']).toBeGreaterThan(0);
    });
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

describe('beside a batch that rests, with 300,000 tallies', () => {
  beforeAll(async () => {
    await database.client`insert into queue_tallies (batch_id, ended) select 100, 1 from generate_series(1, 300000)`;
  });

  test.each(['stale statistics', 'after an ANALYZE'])(
    'with %s, a look for others reads only theirs',
    async (when) => {
      if (when !== 'stale statistics') await database.client.unsafe(analyze);
      const plan = await explain(database, findTalliedQuery(all, [100]), 'force_custom_plan');
      expect(plan['Actual Rows']).toBe(199);
      expect(buffersOf(plan)).toBeLessThan(200 * 6);
    },
  );
});
