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
const { workflows } = queue;
const read = defineJob('read', { queue: 'q', payload: unvalidated<string>(), maxAttempts: 1 });
const light = defineJob('light', { queue: 'q', payload: unvalidated<string>(), keepResult: false });
const report = defineJob('report', { queue: 'other', payload: unvalidated<string>() });

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

const run = async () =>
  await drain(database.db, {
    queue,
    handlers: [
      handle(read, async ({ payload }) => {
        if (payload === 'bad') throw new NonRetryableError('bad');
      }),
      handle(light, async () => undefined),
      handle(report, async () => undefined),
    ],
    deadlineMs: 60_000,
    log: false,
  });

const flowOf = async (payload: string, pages = 2) => {
  const { id } = await workflows.enqueueFlow(database.db, (flow) => {
    const parts = Array.from({ length: pages }, () => flow.add(read, payload));
    flow.add(report, 'r', { after: parts });
  });
  return id;
};
const idsOf = ({ flows }: { readonly flows: readonly { readonly id: number }[] }) =>
  flows.map(({ id }) => id);

describe('the list of flows', () => {
  test('has the newest first, with their states, counts and kinds', async () => {
    const failed = await flowOf('bad');
    const completed = await flowOf('good', 3);
    await run();
    const { id: batch } = await workflows.enqueueBatch(database.db, light, [{ payload: '1' }], {
      ...{ last: report, payload: 'r' },
    });
    const list = await workflows.flows(database.db);
    expect(list).toMatchObject({ nextCursor: undefined, truncated: false });
    expect(list.flows).toMatchObject([
      { id: batch, state: 'open', kinds: ['light'], total: 1, pending: 1, failed: 0, endedAt: null },
      { id: completed, state: 'completed', kinds: ['read', 'report'], total: 4, pending: 0, failed: 0 },
      { id: failed, state: 'failed', kinds: ['read', 'report'], total: 3, pending: 0, failed: 3 },
    ]);
    for (const { state, kinds, ...record } of list.flows)
      expect(record).toEqual(await workflows.flow(database.db, record.id));
  });

  test('has no batch that a step has enqueued', async () => {
    const parent = defineJob('parent', { queue: 'q', payload: unvalidated<string>() });
    await queue.enqueue(database.db, parent, 'p');
    const seen: unknown[] = [];
    await drain(database.db, {
      queue,
      handlers: [
        handle(parent, async ({ step }) => {
          await step.waitForJob(await step.enqueue('child', read, 'c'));
        }),
        handle(read, async ({ db }) => {
          const [batches] = await database.client`select count(*)::int as open from queue_batches`;
          seen.push(batches, (await workflows.flows(db)).flows);
        }),
      ],
      deadlineMs: 60_000,
      log: false,
    });
    expect(seen).toEqual([{ open: 1 }, []]);
  });

  test('has no kinds of jobs that have left no results', async () => {
    const { id } = await workflows.enqueueFlow(database.db, (flow) => void flow.add(light, 'l'));
    expect((await workflows.flows(database.db)).flows[0]?.kinds).toEqual(['light']);
    await run();
    expect((await workflows.flows(database.db)).flows).toMatchObject([{ id, state: 'completed', kinds: [] }]);
  });

  test('goes on where a page has ended, and has flows in one state alone', async () => {
    const bad = [await flowOf('bad'), await flowOf('bad'), await flowOf('bad')];
    await run();
    const open = [await flowOf('good'), await flowOf('good')];
    const all = [...open.toReversed(), ...bad.toReversed()];
    const pages: number[][] = [];
    for (let cursor: number | undefined; ; ) {
      const page = await workflows.flows(database.db, { limit: 2, cursor });
      pages.push(idsOf(page));
      cursor = page.nextCursor;
      if (cursor === undefined) break;
    }
    expect(pages).toEqual([all.slice(0, 2), all.slice(2, 4), all.slice(4)]);
    expect(idsOf(await workflows.flows(database.db, { state: 'failed' }))).toEqual(bad.toReversed());
    expect(idsOf(await workflows.flows(database.db, { state: 'open' }))).toEqual(open.toReversed());
    expect(idsOf(await workflows.flows(database.db, { state: 'completed' }))).toEqual([]);
  });

  test('says where a search has stopped, and goes on from there', async () => {
    const bad = await flowOf('bad');
    await run();
    const open = [await flowOf('good'), await flowOf('good'), await flowOf('good')];
    const first = await workflows.flows(database.db, { state: 'failed', searchLimit: 2 });
    expect(first).toEqual({ flows: [], nextCursor: open[1], truncated: true });
    const rest = { state: 'failed', searchLimit: 10, cursor: first.nextCursor } as const;
    expect(await workflows.flows(database.db, rest)).toMatchObject({
      ...{ flows: [{ id: bad }], nextCursor: undefined, truncated: false },
    });
  });

  test.each([
    [{ state: 'broken' }, TypeError, `flows: state must be 'open', 'failed' or 'completed', got 'broken'`],
    [{ limit: 0 }, RangeError, 'flows: limit must'],
    [{ cursor: Number.NaN }, RangeError, 'flows: cursor must'],
    [{ searchLimit: 2_000_000 }, RangeError, 'flows: searchLimit must'],
    [{ page: 1 }, TypeError, 'page'],
  ])('refuses %o', async (filter, type, message) => {
    // What JavaScript may give it.
    const asked = workflows.flows(database.db, filter as never);
    await expect(asked).rejects.toThrow(message);
    await expect(asked).rejects.toBeInstanceOf(type);
  });
});
