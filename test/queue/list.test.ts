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
    expect(await queue.list(database.db)).toEqual({ jobs: [], nextCursor: undefined, truncated: false });
  });

  test('by state', async () => {
    const ids = await oneOfEach();
    for (const [state, id] of Object.entries(ids)) {
      const { jobs } = await queue.list(database.db, { state: state as JobState });
      expect(jobs.map((job) => [job.state, job.id])).toEqual([[state, id]]);
    }
  });

  test('retrying: those that have failed and wait for their next attempt, due or not', async () => {
    const errors = [{ attempt: 1, name: 'Error', message: 'no', at: '2026-01-01T00:00:00.000Z' }];
    await oneOfEach();
    const [due, later] = await addJobs(database.client, [
      { attempt: 1, errors },
      { attempt: 2, errors, dueInMs: 60_000 },
      { attempt: 2, errors, workerId: 3 },
    ]);
    const { jobs } = await queue.list(database.db, { state: 'retrying' });
    expect(jobs.map(({ id, state }) => [id, state])).toEqual([
      [later, 'scheduled'],
      [due, 'due'],
    ]);
    await expect(queue.list(database.db, { state: 'retrying', finishedAfter: new Date(0) })).rejects.toThrow(
      "apply only to ended jobs, and state is 'retrying'",
    );
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

describe('searches', () => {
  test('by what the payload contains, live or finished', async () => {
    const ids = await addJobs(database.client, [
      { payload: { tenant: 7, lines: [{ sku: 'a' }, { sku: 'b' }] } },
      { payload: { tenant: 8 } },
      { payload: 5 },
      { payload: { tenant: 7 }, kind: 'send-receipt' },
    ]);
    await endJob(database.db);
    const found = async (payload: unknown) => idsOf((await queue.list(database.db, { payload })).jobs);
    expect(await found({ tenant: 7 })).toEqual([ids[3], ids[0]]);
    expect(await found({ lines: [{ sku: 'b' }] })).toEqual([ids[0]]);
    expect(await found({ lines: [{ sku: 'c' }] })).toEqual([]);
    expect(await found(5)).toEqual([ids[2]]);
    expect(await found({})).toEqual([ids[3], ids[1], ids[0]]);
    const both = await queue.list(database.db, { payload: { tenant: 7 }, kind: 'send-receipt' });
    expect(both.jobs).toMatchObject([{ id: ids[3], state: 'completed' }]);
  });

  test('by the times of the enqueue and of the end', async () => {
    const [old, ended, live] = await addJobs(database.client, [{}, { kind: 'send-receipt' }, {}]);
    await database.client`update queue_jobs set created_at = '2020-01-01' where id = ${old}`;
    await endJob(database.db);
    const at = new Date('2021-01-01');
    const found = async (filter: object) => idsOf((await queue.list(database.db, filter)).jobs);
    expect(await found({ createdBefore: at })).toEqual([old]);
    expect(await found({ createdAfter: at })).toEqual([live, ended]);
    expect(await found({ createdAfter: new Date('2020-01-01'), createdBefore: at })).toEqual([old]);
    expect(await found({ createdBefore: new Date('2020-01-01') })).toEqual([]);
    expect(await found({ finishedAfter: at })).toEqual([ended]);
    expect(await found({ finishedBefore: at })).toEqual([]);
    expect(await found({ finishedAfter: at, state: 'completed' })).toEqual([ended]);
  });

  test('stop at their limit, say so, and go on from the cursor until the end', async () => {
    const jobs = Array.from({ length: 20 }, (_, n) => ({
      kind: n % 3 === 0 ? 'send-receipt' : 'k',
      payload: { rare: n < 2 },
    }));
    const ids: number[] = await addJobs(database.client, jobs);
    // Results and live jobs by turns, so that the search goes through both tables.
    await endJob(database.db, { limit: 10 });
    const filter = { payload: { rare: true }, searchLimit: 6 };
    const first = await queue.list(database.db, filter);
    expect(first).toEqual({ jobs: [], nextCursor: ids[14], truncated: true });
    const pages: (readonly number[])[] = [];
    let cursor: number | undefined;
    do {
      const page = await queue.list(database.db, { ...filter, cursor });
      pages.push(idsOf(page.jobs));
      expect(page.truncated).toBe(page.nextCursor !== undefined);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(pages).toEqual([[], [], [], [ids[1], ids[0]]]);
  });

  test('that fill a page are not truncated; their cursor is the last job as ever', async () => {
    const ids: number[] = await addJobs(
      database.client,
      Array.from({ length: 9 }, () => ({ payload: { a: 1 } })),
    );
    const filter = { payload: { a: 1 }, searchLimit: 6, limit: 4 };
    const page = await queue.list(database.db, filter);
    expect([idsOf(page.jobs), page.truncated]).toEqual([[8, 7, 6, 5].map((at) => ids[at]), false]);
    const next = await queue.list(database.db, { ...filter, cursor: page.nextCursor });
    expect([idsOf(next.jobs), next.truncated]).toEqual([[4, 3, 2, 1].map((at) => ids[at]), false]);
    const last = await queue.list(database.db, { ...filter, cursor: next.nextCursor });
    expect(last).toMatchObject({ jobs: [{ id: ids[0] }], nextCursor: undefined, truncated: false });
  });

  test('any filter may have a limit; without one the others go through all', async () => {
    const ids: number[] = await addJobs(
      database.client,
      Array.from({ length: 5 }, (_, n) => ({ kind: n === 0 ? 'rare' : 'k' })),
    );
    expect(idsOf((await queue.list(database.db, { kind: 'rare' })).jobs)).toEqual([ids[0]]);
    const limited = await queue.list(database.db, { kind: 'rare', searchLimit: 3 });
    expect(limited).toEqual({ jobs: [], nextCursor: ids[2], truncated: true });
  });

  test.each<[what: string, filter: object, error: typeof Error, message: RegExp]>([
    ['a payload that is no JSON', { payload: { n: Number.NaN } }, TypeError, /list: payload at n: NaN/],
    ['a NUL in the payload', { payload: 'a\0' }, TypeError, /list: payload: contains a NUL/],
    ['no date', { createdAfter: '2020-01-01' }, RangeError, /createdAfter must be a valid Date/],
    ['an invalid date', { finishedBefore: new Date(Number.NaN) }, RangeError, /finishedBefore/],
    [
      'ends of live jobs',
      { finishedAfter: new Date(), state: 'due' },
      TypeError,
      /only to ended jobs, and state is 'due'/,
    ],
    ['a searchLimit of 0', { searchLimit: 0 }, RangeError, /searchLimit .* from 1 to 10000000, got 0/],
    ['a misspelt name', { createdafter: new Date() }, TypeError, /did you mean createdAfter\?/],
  ])('refuse %s', async (_, filter, error, message) => {
    const refused = queue.list(database.db, filter);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toThrow(error);
  });
});
