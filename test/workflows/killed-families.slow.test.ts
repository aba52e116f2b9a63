import { setTimeout as delay } from 'node:timers/promises';
import { createQueue, createWorker, handlersFor, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { depth } from '../support/depth.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { dieAt, type Place, startDoomedWorker, tellOf } from '../worker/doomed-worker.ts';
import { document, page, report, volume } from './fixtures/family.ts';

const database = useTestDatabase({ max: 5 });
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const worker = {
  database,
  program: 'test/workflows/fixtures/family-worker.ts',
  from: 'settle: finished',
} as const;

const PLACES = [
  'at:claim: answered',
  'at:children: enqueued',
  'at:wait: written',
  'at:settle: parked',
  'at:settle: finished',
  'at:fold: sent',
  'at:fold: folded',
  'at:step: done',
  'at:step: recorded',
  'unsent',
  'sent',
  'moment',
] as const satisfies readonly Place[];
const KILLS = depth(PLACES.length, 60);
const WORKERS = 3;
/** Jobs that are under way at any moment while workers die. */
const UNDER_WAY = 100;
const PAGES = 9;
const ILLEGIBLE = 1;
/** The pages that are in a flow from the beginning: each comes after the one before. */
const CHAIN = 4;

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

interface Family {
  readonly documentId: number;
  readonly batchId: number;
  readonly batchReportId: number;
  readonly flowId: number;
  readonly jobIds: readonly number[];
}

/** A document with its pages, a batch of pages with a report, and a flow that grows. */
async function enqueueFamily(): Promise<Family> {
  return await database.db.transaction(async (tx) => {
    const { id: documentId } = await queue.enqueue(tx, document, PAGES);
    const entries = Array.from({ length: PAGES }, (_, at) => ({ payload: at }));
    const batch = await queue.workflows.enqueueBatch(tx, page, entries, { last: report });
    const flow = await queue.workflows.enqueueFlow(tx, (one) => {
      const chain = [one.add(page, 0)];
      for (let at = 1; at < CHAIN; at++) chain.push(one.add(page, 0, { after: chain.slice(-1) }));
      const grown = one.add(volume, PAGES, { after: chain.slice(-1) });
      one.add(report, undefined, { after: [...chain, grown], onFailure: 'run' });
    });
    return {
      documentId,
      batchId: batch.id,
      batchReportId: batch.lastId,
      flowId: flow.id,
      jobIds: flow.jobIds,
    };
  });
}

test(`parents, flows and batches whose workers are killed ${KILLS} times end once each`, async () => {
  const { db, client } = database;
  const places = Array.from({ length: KILLS }, (_, n) => PLACES[n % PLACES.length] ?? 'moment');
  const families: Family[] = [];
  const dying = dieAt(worker, places, WORKERS);
  let areDying = true;
  const supply = (async () => {
    while (areDying) {
      const [row] = await client<{ live: number }[]>`select count(*)::int as live from queue_jobs`;
      if (Number(row?.live) < UNDER_WAY) families.push(await enqueueFamily());
      // The pace of what comes in.
      await delay(20);
    }
  })();
  try {
    await Promise.race([dying, supply]);
  } finally {
    areDying = false;
  }
  await supply;
  const deaths = await dying;
  const survivor = startDoomedWorker(worker);
  await until(async () => (await client`select from queue_jobs`).length === 0);
  survivor.child.kill('SIGTERM');
  expect(await survivor.exit(), survivor.output()).toEqual([0, null]);
  tellOf(deaths, `${families.length} families`);
  expect(deaths).toHaveLength(KILLS);
  expect(deaths.some(({ held }) => held > 0)).toBe(true);

  const counts = (total: number, failed: number) => ({
    state: 'completed',
    output: { total, completed: total - failed, failed },
  });
  for (const { documentId, batchId, batchReportId, flowId, jobIds } of families) {
    expect(await queue.find(db, document, documentId)).toMatchObject({
      state: 'completed',
      output: PAGES - ILLEGIBLE,
    });
    expect(await queue.find(db, report, batchReportId)).toMatchObject(counts(PAGES, ILLEGIBLE));
    const members = await client`select from queue_results where batch_id = ${batchId}`;
    expect(members).toHaveLength(PAGES);
    const flow = await queue.workflows.flow(db, flowId);
    expect(flow).toMatchObject({ total: CHAIN + 2 + PAGES, pending: 0, failed: ILLEGIBLE });
    expect((await queue.find(db, report, Number(jobIds.at(-1))))?.state).toBe('completed');
    // Each after the one before it.
    const chain = await client`
      select claimed_at >= lag(finished_at) over (order by job_id) as after from queue_results
      where job_id = any(${jobIds as number[]}::int8[]) order by job_id`;
    expect(chain.slice(1).every(({ after }) => after === true)).toBe(true);
  }
  // No page twice, and none left out.
  const [row] = await client`
    select count(*)::int as pages, count(distinct job_id)::int as once
    from queue_results where kind = 'page'`;
  const pages = families.length * (3 * PAGES + CHAIN);
  expect(row).toEqual({ pages, once: pages });
  const [open] = await client`
    select count(*)::int as open from queue_batches where ended_at is null or pending <> 0`;
  expect(open).toEqual({ open: 0 });
}, 600_000);

test('a worker that is killed between the end of the last child and its count: the next look of another counts it', async () => {
  const { db, client } = database;
  const { handle } = handlersFor<typeof db, typeof queue>();
  // It has no handler for pages, and hears of nothing.
  const other = createWorker(db, {
    queue,
    handlers: [
      handle(document, async ({ step }) => {
        const children = await step.enqueueMany('pages', page, [{ payload: 1 }]);
        return await step.all('outputs', children);
      }),
    ],
    listen: false,
    log: false,
  });
  onTestFinished(() => other.stop());
  await other.start();
  const { id } = await queue.enqueue(db, document, 1);
  await until(async () => (await queue.find(db, id))?.state === 'waiting');
  const { exit, output } = startDoomedWorker({ ...worker, from: 'claim: answered' }, 'at:settle: finished:1');
  expect(await exit(), output()).toEqual([null, 'SIGKILL']);
  const ended = queue.waitFor(db, document, id, { timeoutMs: 40_000 });
  // A look comes once a second.
  expect(await runningMsUntil(ended)).toBeLessThan(5_000);
  expect(await ended).toMatchObject({ output: [1] });
  const [row] = await client`select count(*)::int as pages from queue_results where kind = 'page'`;
  expect(row).toEqual({ pages: 1 });
});
