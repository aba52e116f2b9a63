import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  fixedBackoff,
  handlersFor,
  NonRetryableError,
  runNext,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Folded, foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { growBatch } from '../../src/features/batches/queries/grow-batch.ts';
import { recordOneStep } from '../../src/features/workflows/queries/record-one-step.ts';
import { claim, clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import type { Tx } from './fixtures/open-transactions.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
/** A page with links, so many levels deep. */
const crawl = defineJob('crawl', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<number>(),
  backoff: fixedBackoff(0),
});
const report = defineJob('report', { queue: 'reports', output: unvalidated<unknown>() });
const all = { ...tables, ...workflowTables };
const { workflows } = queue;

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

const reported = handle(report, async ({ step }) => {
  const pages = await step.parents(crawl);
  return { ...(await step.parentCounts()), pages: pages.map(({ state }) => state).sort() };
});
type Run = Parameters<typeof handle<typeof crawl>>[1];

async function start(run: Run): Promise<void> {
  const worker = createWorker(database.db, {
    queue,
    handlers: [handle(crawl, run), reported],
    queues: { q: { concurrency: 20 }, reports: {} },
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
}

async function reportOf(id: number): Promise<unknown> {
  const record = await queue.waitFor(database.db, report, id, { timeoutMs: 60_000 });
  return record.state === 'completed' ? record.output : record;
}

const crawlFlow = () =>
  workflows.enqueueFlow(database.db, (flow) => {
    const page = flow.add(crawl, 1);
    flow.add(report, undefined, { after: [page], onFailure: 'run' });
  });

const two = [{ payload: 0 }, { payload: 0 }];
const pagesLeft = (payload: number) => Array.from({ length: 3 }, () => ({ payload: payload - 1 }));

describe('a batch that grows', () => {
  test('ends after the last of all that were added, however deep, and once', async () => {
    await start(async ({ payload, step }) => {
      if (payload > 0) await step.addToFlow('links', crawl, pagesLeft(payload));
      return payload;
    });
    const { id, lastId } = await workflows.enqueueBatch(database.db, crawl, [{ payload: 4 }], {
      last: report,
    });
    const total = 1 + 3 + 9 + 27 + 81;
    expect(await reportOf(lastId)).toEqual({
      total,
      completed: total,
      failed: 0,
      pages: Array.from({ length: total }, () => 'completed'),
    });
    expect(await workflows.flow(database.db, id)).toMatchObject({ total, pending: 0, failed: 0 });
    const [reports] = await database.client`
      select count(*)::int as n from queue_results where kind = 'report'`;
    expect(reports?.n).toBe(1);
  });

  test('has each of them once, however often the handler runs', async () => {
    let runs = 0;
    await start(async ({ payload, step }) => {
      const ids = payload === 0 ? [] : await step.addToFlow('links', crawl, two);
      if (payload > 0 && ++runs < 4) throw new Error('again');
      return ids.length;
    });
    const { jobIds } = await crawlFlow();
    expect(await reportOf(Number(jobIds[1]))).toMatchObject({ total: 3, completed: 3 });
    expect(runs).toBe(4);
  });

  test('goes on although the one that has added them fails', async () => {
    await start(async ({ payload, step }) => {
      if (payload === 0) return 0;
      await step.addToFlow('links', crawl, two);
      throw new NonRetryableError('after that');
    });
    const { jobIds } = await crawlFlow();
    expect(await reportOf(Number(jobIds[1]))).toEqual({
      total: 3,
      completed: 2,
      failed: 1,
      pages: ['completed', 'completed', 'discarded'],
    });
  });

  test('is worked off by drain', async () => {
    const { lastId } = await workflows.enqueueBatch(database.db, crawl, [{ payload: 2 }], { last: report });
    const handlers = [
      handle(crawl, async ({ payload, step }) => {
        if (payload > 0) await step.addToFlow('links', crawl, pagesLeft(payload));
        return payload;
      }),
      reported,
    ];
    expect(await drain(database.db, { queue, handlers, deadlineMs: 60_000 })).toMatchObject({ empty: true });
    expect(await reportOf(lastId)).toMatchObject({ total: 13, completed: 13 });
  });
});

test('is refused to a job that does not belong to one, and adds nothing', async () => {
  const refusals: string[] = [];
  const child = defineJob('child', { queue: 'q' });
  const plain = defineJob('plain', { queue: 'q' });
  const handlers = [
    handle(plain, async ({ step }) => {
      await step.waitForJob(await step.enqueue('child', child));
      await step.addToFlow('links', crawl, two).catch((error) => refusals.push(error.message));
    }),
    handle(child, async ({ step }) => {
      await step.addToFlow('links', crawl, two).catch((error) => refusals.push(error.message));
    }),
  ];
  const worker = createWorker(database.db, {
    queue,
    handlers,
    queues: { q: {} },
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  const { id } = await queue.enqueue(database.db, plain);
  await until(async () => (await queue.find(database.db, id))?.state === 'completed');
  expect(refusals).toEqual([
    expect.stringContaining("('child') does not belong to a flow or a batch that can grow"),
    expect.stringContaining("('plain') does not belong to a flow or a batch that can grow"),
  ]);
  const [row] = await database.client`select count(*)::int as n from queue_jobs`;
  expect(row?.n).toBe(0);
});

describe('two at once', () => {
  const fold = (ids: readonly number[]) =>
    foldTallies(database.db, all, { ids, channel: undefined, locks: 'briefly' });

  /** The job that adds the others, held by worker 1, and the step that says so. */
  async function adding() {
    const { id } = await workflows.enqueueBatch(database.db, crawl, [{ payload: 1 }], { last: report });
    const [held] = await claim(database.db, { kinds: ['crawl'] });
    if (held === undefined) throw new Error('nothing was due');
    const step = { name: 'links', kind: 'enqueue', output: '{}', tookMs: 0, ended: true } as const;
    const record = (tx: Tx) =>
      recordOneStep(tx, all, { queue: 'q', workerId: 1 }, { ...held, ...step }, 'wait');
    return { id, jobId: held.id, record };
  }
  const end = (jobId: number) => queue.cancel(database.db, jobId, { force: true });

  test('a cancel is counted beside what is just being added, and the count of that tells it to end', async () => {
    const { id } = await workflows.enqueueBatch(database.db, crawl, [{ payload: 1 }], { last: report });
    await database.db.transaction(async (tx) => {
      expect(await growBatch(tx, all, id, 5)).toBe(true);
      await workflows.cancelFlow(database.db, id);
      expect(await fold([id])).toMatchObject({ tallies: 1, busy: [], unwanted: [id] });
    });
    expect(await fold([id])).toMatchObject({ tallies: 1, unwanted: [id] });
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 6 });
  });

  test('what is just being added to a flow that was cancelled and redriven goes on', async () => {
    const { id } = await workflows.enqueueBatch(database.db, crawl, [{ payload: 1 }], { last: report });
    await workflows.cancelFlow(database.db, id);
    expect(await fold([id])).toMatchObject({ unwanted: [id] });
    await database.db.transaction(async (tx) => {
      expect(await growBatch(tx, all, id, 5)).toBe(true);
      await database.db.transaction(async (other) => {
        await other.execute(sql`set local lock_timeout = '5s'`);
        await workflows.redriveFlow(other, id);
      });
    });
    expect(await fold([id])).toMatchObject({ tallies: 2, unwanted: [] });
  });

  test('the job that adds others ends after them, so the batch does not end before', async () => {
    const { id, jobId, record } = await adding();
    await database.db.transaction(async (tx) => {
      expect(await growBatch(tx, all, id, 5)).toBe(true);
      expect(await record(tx)).toBeDefined();
      expect(await end(jobId)).toEqual({ cancelled: false, reason: 'locked' });
      expect(await fold([id])).toMatchObject({ tallies: 0 });
    });
    expect(await end(jobId)).toEqual({ cancelled: true });
    expect(await fold([id])).toMatchObject({ tallies: 2, woken: [] });
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 6, pending: 5, endedAt: null });
  });

  test('or it has ended before its step is recorded, and adds none', async () => {
    const { id, jobId, record } = await adding();
    const growing = database.db.transaction(async (tx) => {
      expect(await growBatch(tx, all, id, 5)).toBe(true);
      expect(await end(jobId)).toEqual({ cancelled: true });
      expect(await fold([id])).toMatchObject({ tallies: 1, woken: ['reports'] });
      if ((await record(tx)) === undefined) throw new Error('lost');
    });
    await expect(growing).rejects.toThrow('lost');
    expect(await fold([id])).toMatchObject({ tallies: 0 });
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 1, endedAt: expect.any(Date) });
  });

  test('naively, without a lock of the job that adds them: the batch ends before them', async () => {
    const { id } = await workflows.enqueueBatch(database.db, crawl, [{ payload: 1 }], { last: report });
    await database.db.transaction(async (tx) => {
      await tx.execute(sql`insert into queue_tallies (batch_id, added) values (${id}, 5)`);
      await queue.cancelMany(database.db, { kind: 'crawl' });
      expect(await fold([id])).toMatchObject({ tallies: 1, woken: [expect.any(String)] });
    });
    await fold([id]);
    expect(await workflows.flow(database.db, id)).toMatchObject({ pending: 5, endedAt: expect.any(Date) });
  });

  test('members that are added after the cancel of their flow was counted are to end, too', async () => {
    const { id } = await workflows.enqueueBatch(database.db, crawl, [{ payload: 1 }], { last: report });
    await workflows.cancelFlow(database.db, id, 'no longer');
    expect(await fold([id])).toMatchObject({ unwanted: [id] });
    expect(await growBatch(database.db, all, id, 5)).toBe(true);
    expect(await fold([id])).toMatchObject({ tallies: 1, unwanted: [id] });
  });
});

describe('a flow to which others add at any moment', () => {
  /** Transactions that add members overlap, so one is open at each moment. What counts see meanwhile. */
  async function whileOthersAdd(id: number, grow: (tx: Tx) => Promise<unknown>): Promise<Folded[]> {
    const folded: Folded[] = [];
    let former = { commit: () => {}, over: Promise.resolve() };
    for (let round = 0; round < 10; round++) {
      const [hasAdded, goesOn] = [gate(), gate()];
      const over = database.db.transaction(async (tx) => {
        await grow(tx);
        hasAdded.open();
        await goesOn.opened;
      });
      await hasAdded.opened;
      former.commit();
      await former.over;
      former = { commit: () => goesOn.open(), over };
      folded.push(await foldTallies(database.db, all, { ids: [id], channel: undefined, locks: 'briefly' }));
    }
    former.commit();
    await former.over;
    return folded;
  }
  const batchOfOne = async () =>
    (await workflows.enqueueBatch(database.db, crawl, [{ payload: 1 }], { last: report })).id;

  test('is counted and cancelled all the same', async () => {
    const id = await batchOfOne();
    await workflows.cancelFlow(database.db, id, 'enough');
    const folded = await whileOthersAdd(id, async (tx) => {
      expect(await growBatch(tx, all, id, 1)).toBe(true);
    });
    // The cancel, and then what each has added as soon as it commits.
    expect(folded.map(({ tallies }) => tallies)).toEqual(folded.map(() => 1));
    expect(folded.map(({ unwanted }) => unwanted)).toEqual(folded.map(() => [id]));
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 10, cancelReason: 'enough' });
  });

  test('naively, with a lock that those who add share: nothing is counted, and it is not cancelled', async () => {
    const id = await batchOfOne();
    await workflows.cancelFlow(database.db, id, 'enough');
    const folded = await whileOthersAdd(id, async (tx) => {
      await tx.execute(sql`select from queue_batches where id = ${id} for share`);
      await tx.execute(sql`insert into queue_tallies (batch_id, added) values (${id}, 1)`);
    });
    expect(folded.map(({ tallies, busy }) => ({ tallies, busy }))).toEqual(
      folded.map(() => ({ tallies: 0, busy: [id] })),
    );
    expect(await workflows.flow(database.db, id)).toMatchObject({ total: 1, cancelReason: null });
  });
});

describe('large jobs are inserted by several statements', () => {
  const large = defineJob('large', { queue: 'large', payload: unvalidated<string>() });
  const payload = 'x'.repeat(900_000);
  const many = Array.from({ length: 20 }, () => ({ payload }));
  /** How many jobs each of them has inserted. */
  const byStatement = async () => {
    const rows = await database.client`
      select count(*)::int as jobs from queue_jobs where kind = 'large'
      group by xmin::text, cmin::text order by 1`;
    return rows.map(({ jobs }) => jobs);
  };

  test('of a batch', async () => {
    const { enqueued } = await workflows.enqueueBatch(database.db, large, many, { last: report });
    expect(enqueued).toBe(20);
    expect(await byStatement()).toEqual([2, 9, 9]);
  });

  test('whose metadata is large', async () => {
    const noted = many.map(({ payload: note }) => ({ payload: '', metadata: { note } }));
    await workflows.enqueueBatch(database.db, large, noted, { last: report });
    expect(await byStatement()).toEqual([2, 9, 9]);
  });

  test.each([
    ['children', 'enqueueMany'],
    ['members of the flow', 'addToFlow'],
  ] as const)('that are %s', async (_, method) => {
    const page = handle(crawl, async ({ step }) => {
      await step[method]('large', large, many);
      return 1;
    });
    await crawlFlow();
    const handlers = [page, handle(large, () => {})];
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
    expect(await byStatement()).toEqual([2, 9, 9]);
  });
});
