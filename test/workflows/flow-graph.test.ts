import {
  createQueue,
  defineJob,
  drain,
  handlersFor,
  NonRetryableError,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const extract = defineJob('extract', { queue: 'q', payload: unvalidated<string>() });
const transform = defineJob('transform', { queue: 'q', payload: unvalidated<string>() });
const light = defineJob('light', { queue: 'q', payload: unvalidated<string>(), keepResult: false });
const load = defineJob('load', { queue: 'other', payload: unvalidated<string>() });
const { workflows } = queue;

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

const handler = async ({ payload }: { readonly payload: string }) => {
  if (payload === 'bad') throw new NonRetryableError('bad');
};
const handlers = [
  handle(extract, handler),
  handle(transform, handler),
  handle(light, handler),
  handle(load, handler),
];
const run = async () => await drain(database.db, { queue, handlers, deadlineMs: 60_000, log: false });

/** A pipeline: one, then `pages` of one kind and one of another kind, then one. */
async function pipeline(pages: number, bad = 0) {
  return await workflows.enqueueFlow(database.db, (flow) => {
    const first = flow.add(extract, 'x');
    const parts = Array.from({ length: pages }, (_, page) =>
      flow.add(transform, page < bad ? 'bad' : 'page', { after: [first] }),
    );
    const other = flow.add(light, 'l', { after: [first] });
    flow.add(load, 'l', { after: [...parts, other], onFailure: 'run' });
  });
}

describe('the graph of a flow', () => {
  test('has jobs with the same jobs before and after them as one group of each kind', async () => {
    const { id, jobIds } = await pipeline(500);
    const graph = await workflows.flowGraph(database.db, id);
    expect(graph).toMatchObject({ id, total: 503, pending: 503, failed: 0, isWhole: true });
    const [first, parts, other, last] = graph?.groups ?? [];
    expect(graph?.groups).toHaveLength(4);
    expect(first).toMatchObject({ kind: 'extract', jobs: 1, pending: 1, states: { due: 1 }, after: [] });
    expect(first?.onFailure).toBeUndefined();
    expect(parts).toMatchObject({
      kind: 'transform',
      jobs: 500,
      states: { waiting: 500 },
      firstId: jobIds[1],
      after: [first?.key],
      onFailure: 'cancel',
    });
    expect(other).toMatchObject({ kind: 'light', jobs: 1, after: [first?.key], firstId: jobIds[501] });
    expect(last).toMatchObject({ kind: 'load', after: [parts?.key, other?.key], onFailure: 'run' });
  });

  test('says how its jobs have ended, under the same keys, also those that left no result', async () => {
    const { id } = await pipeline(20, 3);
    const keys = (await workflows.flowGraph(database.db, id))?.groups.map(({ key }) => key);
    await run();
    const graph = await workflows.flowGraph(database.db, id);
    expect(graph).toMatchObject({ total: 23, pending: 0, failed: 3, isWhole: true });
    expect(graph?.endedAt).toBeInstanceOf(Date);
    const [gone, , parts, last] = graph?.groups ?? [];
    expect(parts).toMatchObject({ jobs: 20, pending: 0, failed: 3, states: { completed: 17, discarded: 3 } });
    expect(parts?.key).toBe(keys?.[1]);
    expect(last).toMatchObject({ kind: 'load', states: { completed: 1 } });
    // Nothing tells its kind any more.
    expect(gone).toMatchObject({
      kind: null,
      jobs: 1,
      pending: 0,
      failed: 0,
      states: {},
      firstId: undefined,
    });
    expect(last?.after).toEqual([gone?.key, parts?.key]);
  });

  test('keeps jobs apart that wait for others, or that others wait for', async () => {
    const { id } = await workflows.enqueueFlow(database.db, (flow) => {
      const a = flow.add(extract, 'a');
      const b = flow.add(extract, 'b');
      const c = flow.add(transform, 'c', { after: [a] });
      const d = flow.add(transform, 'd', { after: [b] });
      flow.add(load, 'e', { after: [c, d] });
    });
    const groups = (await workflows.flowGraph(database.db, id))?.groups ?? [];
    const [a, b, c, d, e] = groups;
    expect(groups.map(({ jobs }) => jobs)).toEqual([1, 1, 1, 1, 1]);
    expect([c?.after, d?.after, e?.after]).toEqual([[a?.key], [b?.key], [c?.key, d?.key]]);
  });

  test('of a batch has its last job, and counts a large one by the batch', async () => {
    const entries = Array.from({ length: 6_000 }, () => ({ payload: 'page' }));
    const { id, lastId } = await workflows.enqueueBatch(database.db, transform, entries, {
      last: load,
      payload: 'l',
    });
    const graph = await workflows.flowGraph(database.db, id);
    const [all, last] = graph?.groups ?? [];
    expect(all).toMatchObject({ kind: 'transform', jobs: 6_000, pending: 6_000, states: undefined });
    expect(last).toMatchObject({ kind: 'load', firstId: lastId, after: [all?.key], states: { waiting: 1 } });
    expect(await workflows.flowOf(database.db, lastId)).toBe(id);
  });

  test('in a scope is of the jobs in it, and so are its counts', async () => {
    const { id } = await pipeline(5);
    const graph = await workflows.graphIn(database.db, id, { queues: ['other'], own: [] });
    expect(graph).toMatchObject({ total: 1, pending: 1, failed: 0 });
    expect(graph?.groups).toMatchObject([{ kind: 'load', after: [] }]);
    expect(await workflows.graphIn(database.db, id, { queues: ['none'], own: [] })).toBeUndefined();
  });

  test('is undefined where there is none', async () => {
    expect(await workflows.flowGraph(database.db, 4711)).toBeUndefined();
    await expect(workflows.flowGraph(database.db, 0)).rejects.toThrow('flowGraph');
  });
});

test('the flow of a job is found while it lives and afterwards; other jobs have none', async () => {
  const { id, jobIds } = await pipeline(2);
  const alone = await queue.enqueue(database.db, extract, 'alone');
  const flows = async () => await Promise.all(jobIds.map((job) => workflows.flowOf(database.db, job)));
  expect(await flows()).toEqual(jobIds.map(() => id));
  await run();
  // What left no result is found by what it has waited for.
  expect(await flows()).toEqual(jobIds.map(() => id));
  expect(await workflows.flowOf(database.db, alone.id)).toBeUndefined();
});

test('jobs of a group are listed by pages, in a state, and in the scope alone', async () => {
  const { id, jobIds } = await pipeline(6, 2);
  await run();
  const group = (await workflows.flowGraph(database.db, id))?.groups.find(({ kind }) => kind === 'transform');
  if (group === undefined || group.batchId === null) throw new Error('no group');
  const which = {
    batchId: group.batchId,
    kind: 'transform',
    after: group.afterBatches,
    state: undefined,
    above: 0,
    limit: 4,
    scope: { queues: undefined, own: [] },
    excerpt: 100,
  };
  const idsOf = async (changed: object) =>
    (await workflows.groupJobs(database.db, { ...which, ...changed })).map((job) => job.id);
  expect(await idsOf({})).toEqual(jobIds.slice(1, 5));
  expect(await idsOf({ above: jobIds[4] })).toEqual(jobIds.slice(5, 7));
  expect(await idsOf({ state: 'discarded' })).toEqual(jobIds.slice(1, 3));
  expect(await idsOf({ state: 'due' })).toEqual([]);
  expect(await idsOf({ after: [] })).toEqual([]);
  expect(await idsOf({ kind: undefined, limit: 10 })).toEqual(jobIds.slice(1, 7));
  expect(await idsOf({ scope: { queues: ['other'], own: [] } })).toEqual([]);
});
