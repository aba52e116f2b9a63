import { createQueue, createWorker, defineJob, handlersFor, unvalidated, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { pruneResults } from '../../src/core/queries/operate/prune-results.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

/** However a member ends, what waits for it goes on: its parent, the next job of its flow, and the last job of its batch. */

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const parent = defineJob('parent', {
  queue: 'parents',
  payload: unvalidated<readonly number[]>(),
  output: unvalidated<unknown>(),
});
const report = defineJob('report', { queue: 'parents', output: unvalidated<unknown>() });
const member = defineJob('member', {
  queue: 'members',
  payload: unvalidated<number>(),
  output: unvalidated<number>(),
  maxAttempts: 1,
});

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

async function startParents(): Promise<void> {
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(parent, async ({ payload, step }) => {
        const entries = payload.map((of) => ({ payload: of }));
        return await step.allEnded('ends', await step.enqueueMany('members', member, entries));
      }),
      handle(report, async ({ step }) => await step.parentCounts()),
    ],
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
}

/** Works on members, and completes them in a transaction of the handler. */
async function startMembers(begins: (id: number) => Promise<void> = async () => {}): Promise<void> {
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(member, async ({ payload, job, db, complete }) => {
        await begins(job.id);
        await db.transaction(async (tx) => await complete(tx, payload * 10));
      }),
    ],
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
}

/** All members run, and none ends by itself. */
async function hangMembers(ids: readonly number[]): Promise<void> {
  const over = gate();
  const running = new Set<number>();
  onTestFinished(over.open);
  await startMembers(async (id) => {
    running.add(id);
    await over.opened;
  });
  await until(() => ids.every((id) => running.has(id)));
}

const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;

async function membersOf(parentId: number): Promise<number[]> {
  await until(async () => (await stateOf(parentId)) === 'waiting');
  const rows = await database.client`select id::int from queue_jobs where kind = 'member' order by id`;
  return rows.map((row) => row.id);
}

/** By what members end: the state that this leaves them in, the reason that their parents are told, and what ends them. */
const ends: readonly (readonly [
  by: string,
  end: { readonly state: string; readonly output?: number; readonly reason?: unknown },
  endAll: (ids: readonly number[]) => Promise<unknown>,
])[] = [
  ['complete(tx)', { state: 'completed', output: 10 }, () => startMembers()],
  [
    'cancel, by force while they run',
    { state: 'cancelled', reason: 'enough' },
    async (ids) => {
      await hangMembers(ids);
      for (const id of ids) {
        const cancelled = await queue.cancel(database.db, id, { reason: 'enough', force: true });
        expect(cancelled).toEqual({ cancelled: true });
      }
    },
  ],
  [
    'cancelMany, by force while they run',
    { state: 'cancelled', reason: 'enough' },
    async (ids) => {
      await hangMembers(ids);
      const options = { reason: 'enough', force: true };
      const cancelled = await queue.cancelMany(database.db, { kind: 'member' }, options);
      expect(cancelled).toEqual({ cancelled: ids.length, requested: 0, locked: 0 });
    },
  ],
  [
    'cancelMany, before they run',
    { state: 'cancelled', reason: 'enough' },
    async (ids) => {
      const cancelled = await queue.cancelMany(database.db, { ids }, { reason: 'enough' });
      expect(cancelled).toEqual({ cancelled: ids.length, requested: 0, locked: 0 });
    },
  ],
  [
    'the death of their worker on their last attempt',
    { state: 'discarded', reason: expect.stringContaining('was claimed 1 times') },
    async () => {
      await database.client`
        update queue_jobs set worker_id = 999999, attempt = 1, claimed_at = now(), fence = fence + 1
        where kind = 'member'`;
      await startMembers(() => Promise.reject(new Error('it must not run')));
    },
  ],
];

test.each(ends)('members that are ended by %s are counted', async (_, end, endAll) => {
  const { db } = database;
  await startParents();
  const { id } = await queue.enqueue(db, parent, [1]);
  const batch = await queue.workflows.enqueueBatch(db, member, [{ payload: 1 }], { last: report });
  const flow = await queue.workflows.enqueueFlow(db, (one) => {
    one.add(report, undefined, { after: [one.add(member, 1)], onFailure: 'run' });
  });
  const ids = await membersOf(id);
  expect(ids).toHaveLength(3);
  await endAll(ids);
  const endOf = async (of: typeof parent | typeof report, waiting: number) =>
    await queue.waitFor(db, of, waiting, { timeoutMs: 40_000 });
  expect(await endOf(parent, id)).toMatchObject({ state: 'completed', output: [end] });
  const failed = end.state === 'completed' ? 0 : 1;
  const counts = { state: 'completed', output: { total: 1, completed: 1 - failed, failed } };
  expect(await endOf(report, batch.lastId)).toMatchObject(counts);
  expect(await endOf(report, Number(flow.jobIds[1]))).toMatchObject(counts);
  for (const one of ids) expect(await stateOf(one)).toBe(end.state);
  const left = await database.client`select from queue_batches where ended_at is null or pending <> 0`;
  expect(left).toHaveLength(0);
});

test('a member whose result is pruned before the last one ends was counted, and is gone for its parent', async () => {
  const { db } = database;
  await startParents();
  const { id } = await queue.enqueue(db, parent, [1, 2]);
  const [first = 0, second = 0] = await membersOf(id);
  await queue.cancel(db, first);
  await database.client`update queue_results set finished_at = now() - interval '1 hour'`;
  expect((await pruneResults(db, tables, { retentionMs: 60_000, limit: 10 })).pruned).toBe(1);
  await queue.cancel(db, second);
  expect(await queue.waitFor(db, parent, id, { timeoutMs: 40_000 })).toMatchObject({
    state: 'completed',
    output: [{ state: 'gone' }, { state: 'cancelled' }],
  });
  const [batch] = await database.client`select pending::int, failed::int from queue_batches`;
  expect(batch).toEqual({ pending: 0, failed: 2 });
});
