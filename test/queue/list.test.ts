import { createQueue, defineJob, type JobState, unvalidated } from 'drizzle-queue';
import { beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { addJob, addJobs, clearTables, idsOf } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase();
const queue = createQueue();
const sendReceipt = defineJob('send-receipt', {
  payload: z.object({ orderId: z.number() }),
  output: z.object({ messageId: z.string() }),
  queue: 'q',
});
const index = defineJob('index', { payload: unvalidated<number>(), queue: 'other' });

beforeEach(() => clearTables(database.client));

/** One job in each state, by state. */
async function oneOfEach(): Promise<Record<JobState, number>> {
  const enqueue = async () => (await queue.enqueue(database.db, sendReceipt, { orderId: 1 })).id;
  const completed = await enqueue();
  await endJob(database.db, { output: { messageId: 'm' } });
  const discarded = await enqueue();
  await endJob(database.db, { state: 'discarded' });
  const cancelled = await enqueue();
  await queue.cancel(database.db, cancelled);
  const due = await enqueue();
  const running = await addJob(database.client, { kind: 'send-receipt', workerId: 3, dueInMs: 60_000 });
  const scheduled = await addJob(database.client, { kind: 'send-receipt', dueInMs: 60_000 });
  const waiting = await addJob(database.client, { kind: 'send-receipt' });
  await database.client`update queue_jobs set run_at = 'infinity' where id = ${waiting}`;
  return { completed, discarded, cancelled, due, running, scheduled, waiting };
}

describe('filters', () => {
  test('none: live jobs and results together, newest first', async () => {
    const ids = await oneOfEach();
    const { jobs, nextCursor } = await queue.list(database.db);
    expect(idsOf(jobs)).toEqual(Object.values(ids).sort((a, b) => b - a));
    expect(nextCursor).toBeUndefined();
    expect(Object.fromEntries(jobs.map(({ state, id }) => [state, id]))).toEqual(ids);
  });

  test('nothing there: an empty page, and no next one', async () => {
    expect(await queue.list(database.db)).toEqual({ jobs: [], nextCursor: undefined });
  });

  test('by state', async () => {
    const ids = await oneOfEach();
    for (const [state, id] of Object.entries(ids)) {
      const { jobs } = await queue.list(database.db, { state: state as JobState });
      expect(jobs.map((job) => [job.state, job.id])).toEqual([[state, id]]);
    }
  });

  test('by queue, kind and definition, alone and together', async () => {
    const [a, b, c] = await addJobs(database.client, [
      { queue: 'q', kind: 'index' },
      { queue: 'other', kind: 'index' },
      { queue: 'other', kind: 'x' },
    ]);
    await queue.cancel(database.db, b);
    const listed = async (filter: Parameters<typeof queue.list>[1]) =>
      idsOf((await queue.list(database.db, filter)).jobs);
    expect(await listed({ queue: 'other' })).toEqual([c, b]);
    expect(await listed({ kind: 'index' })).toEqual([b, a]);
    expect(await listed({ job: index })).toEqual([b, a]);
    expect(await listed({ queue: 'other', kind: 'index' })).toEqual([b]);
    expect(await listed({ queue: 'other', job: index, state: 'cancelled' })).toEqual([b]);
    expect(await listed({ queue: 'other', job: index, state: 'due' })).toEqual([]);
    expect(await listed({ queue: 'nope' })).toEqual([]);
  });

  test('a definition types what is listed', async () => {
    await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
    await endJob(database.db, { output: { messageId: 'm' } });
    const { jobs } = await queue.list(database.db, { job: sendReceipt });
    const [record] = jobs;
    expect(record?.payload.orderId).toBe(7);
    expectTypeOf(record?.payload).toEqualTypeOf<{ orderId: number } | undefined>();
    if (record?.state === 'completed') expectTypeOf(record.output).toEqualTypeOf<{ messageId: string }>();
    const { jobs: untyped } = await queue.list(database.db);
    expectTypeOf(untyped[0]?.payload).toEqualTypeOf<unknown>();
  });
});

describe('pages', () => {
  const COUNT = 47;

  async function allPages(limit: number, between: (page: number) => Promise<unknown>): Promise<number[]> {
    const ids: number[] = [];
    let cursor: number | undefined;
    for (let page = 1; page === 1 || cursor !== undefined; page++) {
      const { jobs, nextCursor } = await queue.list(database.db, { cursor, limit });
      expect(jobs.length).toBeLessThanOrEqual(limit);
      ids.push(...idsOf(jobs));
      cursor = nextCursor;
      if (cursor !== undefined) await between(page);
    }
    return ids;
  }

  async function enqueueAll(): Promise<number[]> {
    const entries = Array.from({ length: COUNT }, (_, orderId) => ({ payload: { orderId } }));
    return (await queue.enqueueMany(database.db, sendReceipt, entries)).map(({ id }) => id).reverse();
  }

  test.each([1, 10, 46, 47, 48, 1_000])('of %i list each job once', async (limit) => {
    const newestFirst = await enqueueAll();
    expect(await allPages(limit, async () => {})).toEqual(newestFirst);
  });

  test('50 jobs unless asked for more or less', async () => {
    await addJobs(
      database.client,
      Array.from({ length: 60 }, () => ({})),
    );
    expect((await queue.list(database.db)).jobs).toHaveLength(50);
  });

  test('list each job once although jobs finish, come back and are added between them', async () => {
    const newestFirst = await enqueueAll();
    let pages = 0;
    const listed = await allPages(10, async (page) => {
      pages = page;
      await endJob(database.db, { limit: 7, state: page % 2 === 0 ? 'completed' : 'discarded' });
      if (page === 3) await queue.redrive(database.db, { all: true });
      await queue.enqueue(database.db, sendReceipt, { orderId: 1_000 + page });
    });
    expect(pages).toBeGreaterThan(3);
    expect(listed).toEqual(newestFirst);
  });

  test('of one state, with a filter, go on where they stopped', async () => {
    const newestFirst = await enqueueAll();
    await endJob(database.db, { limit: 25 });
    const filter = { job: sendReceipt, state: 'completed', limit: 10 } as const;
    const first = await queue.list(database.db, filter);
    const second = await queue.list(database.db, { ...filter, cursor: first.nextCursor });
    const third = await queue.list(database.db, { ...filter, cursor: second.nextCursor });
    expect([first, second, third].flatMap(({ jobs }) => idsOf(jobs))).toEqual(newestFirst.slice(-25));
    expect(third.nextCursor).toBeUndefined();
  });
});
