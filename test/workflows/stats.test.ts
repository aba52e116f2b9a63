import { createQueue, defineJob, handlersFor, runNext, unvalidated, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase({ max: 5 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const { workflows } = queue;
const read = defineJob('read', { queue: 'q', payload: unvalidated<number>() });
const report = defineJob('report', { queue: 'other' });
const parent = defineJob('parent', { queue: 'q' });
const handlers = [
  handle(read, async () => undefined),
  handle(report, async () => undefined),
  handle(parent, async ({ step }) => {
    const children = await step.enqueueMany('children', read, [{ payload: 1 }, { payload: 2 }]);
    await step.allEnded('ends', children);
  }),
];
const HOUR_MS = 3_600_000;

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

const stats = async () => await workflows.stats(database.db);
const next = async () => (await runNext(database.db, { queue, handlers }))?.job.kind;
const fold = async () =>
  await foldTallies(database.db, { ...tables, ...workflowTables }, { channel: undefined, locks: 'briefly' });

/** One with so many jobs, one that waits for them, and one that waits for that. */
const enqueueFlow = async (jobs: number) =>
  await workflows.enqueueFlow(database.db, (flow) => {
    const parts = Array.from({ length: jobs }, (_, at) => flow.add(read, at));
    flow.add(report, undefined, { after: [flow.add(report, undefined, { after: parts })] });
  });

describe('workflows.stats', () => {
  test('of none says so', async () => {
    await queue.enqueue(database.db, read, 1);
    expect(await stats()).toEqual({ open: 0, oldestOpenMs: undefined, waiting: 0, isLeast: false });
  });

  test('counts flows and batches that are open, what waits in them, and the age of the oldest', async () => {
    const { id } = await enqueueFlow(3);
    await database.client`
      update queue_batches set created_at = created_at - interval '1 hour' where flow_id = ${id}`;
    await enqueueFlow(1);
    await workflows.enqueueBatch(database.db, read, [{ payload: 1 }], { last: report });
    const { oldestOpenMs, ...counts } = await stats();
    expect(counts).toEqual({ open: 3, waiting: 5, isLeast: false });
    expect(oldestOpenMs).toBeGreaterThanOrEqual(HOUR_MS);
    expect(oldestOpenMs).toBeLessThan(2 * HOUR_MS);
  });

  test('counts no flow that has ended, and no job that waits no longer', async () => {
    await enqueueFlow(1);
    expect(await stats()).toMatchObject({ open: 1, waiting: 2 });
    expect(await next()).toBe('read');
    await fold();
    expect(await stats()).toMatchObject({ open: 1, waiting: 1 });
    expect(await next()).toBe('report');
    await fold();
    expect(await next()).toBe('report');
    await fold();
    expect(await stats()).toMatchObject({ open: 0, oldestOpenMs: undefined, waiting: 0 });
    // One that was put back by itself does not open it again.
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, batch_id)
      select 'q', 'read', '1', 3, min(id) from queue_batches`;
    expect(await stats()).toMatchObject({ open: 0 });
  });

  test('counts a handler that waits for children, but no flow for them', async () => {
    await queue.enqueue(database.db, parent);
    expect(await next()).toBe('parent');
    // Its handler has enqueued them, and goes on.
    await database.client`update queue_batches set waiting = null`;
    expect(await stats()).toMatchObject({ open: 0, waiting: 0 });
    await database.client`update queue_batches set waiting = 'end'`;
    expect(await stats()).toEqual({ open: 0, oldestOpenMs: undefined, waiting: 1, isLeast: false });
  });

  test('stops after 10,000, the oldest first', async () => {
    await database.client`
      insert into queue_batches (id, flow_id, total, pending, created_at) overriding system value
      select n, n, 1, 1, now() - case when n = 1 then interval '1 day' else '0 s' end
      from generate_series(1, 10001) as n`;
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, batch_id)
      select 'q', 'k', '1', 3, n from generate_series(1, 10001) as n`;
    const { oldestOpenMs, ...counts } = await stats();
    expect(counts).toEqual({ open: 10_000, waiting: 0, isLeast: true });
    expect(oldestOpenMs).toBeGreaterThanOrEqual(24 * HOUR_MS);
  });
});
