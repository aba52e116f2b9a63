import { cancel, createQueue, defineJob, drain, handle, NonRetryableError, unvalidated } from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
import { insertJobs as insertJobsAndWake } from '../../src/core/queries/enqueue/insert-jobs.ts';
import { type RedriveResult, redriveJobs } from '../../src/core/queries/operate/redrive-jobs.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import type { Executor } from '../../src/core/sql/executor.ts';
import type { Redrive } from '../../src/core/sql/is-discarded.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJobs, claim, clearTables, type GivenJob, jobRow, resultRow, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

/** The ids alone. */
const insertJobs = async (...args: Parameters<typeof insertJobsAndWake>) =>
  (await insertJobsAndWake(...args)).ids;

const database = useTestDatabase();
const queue = createQueue();
const outcomeOnly = defineJob('outcome-only', {
  payload: unvalidated<{ n: number }>(),
  keepResult: 'outcome',
});

beforeEach(() => clearTables(database.client));

const redrive = (db: Executor, options: Redrive = {}): Promise<RedriveResult> =>
  redriveJobs(db, tables, options);

/** Jobs that were discarded when they had been due. */
async function addDiscarded<const TJobs extends readonly GivenJob[]>(jobs: TJobs) {
  const ids = await addJobs(
    database.client,
    jobs.map(({ uniqueKey: _, ...job }) => job),
  );
  const keys = jobs.map(({ uniqueKey = null }, place) => ({ id: ids[place], key: uniqueKey }));
  await database.client`
    with discarded as (
      delete from queue_jobs as j using jsonb_to_recordset(${JSON.stringify(keys)}::text::jsonb) as given (id int8, key text)
      where j.id = given.id
      returning j.*, given.key
    )
    insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
      unique_key, metadata, worker_id, created_at, run_at, claimed_at, finished_at)
    select id, queue, kind, payload, 'discarded', errors, attempt, max_attempts, priority, fence, key, metadata,
      worker_id, created_at, run_at, claimed_at, run_at
    from discarded`;
  // As many as there are jobs.
  return ids as { -readonly [K in keyof TJobs]: number };
}

async function counts(): Promise<unknown> {
  const [row] = await database.client`
    select (select count(*) from queue_jobs)::int as live, (select count(*) from queue_results)::int as results`;
  return row;
}

describe('a job that is put back', () => {
  test('is the old one, due now, with all its attempts; its result is gone', async () => {
    const [id] = await addDiscarded([
      {
        queue: 'mail',
        kind: 'send',
        payload: { a: 1 },
        priority: 2,
        attempt: 9,
        maxAttempts: 9,
        fence: 31,
        workerId: 4,
        uniqueKey: 'u',
        metadata: { tenant: 't' },
        errors: [{ attempt: 9, name: 'Error', message: 'x', at: 'then' }],
      },
    ]);
    const { job_id, state, output, finished_at, ...kept } = { ...(await resultRow(database.client, id)) };
    expect(await redrive(database.db, { id })).toEqual({ redriven: 1, duplicates: 0 });
    expect(await resultRow(database.client, id)).toBeUndefined();
    const job = await jobRow(database.client, id);
    expect(job).toEqual({
      ...kept,
      id: job_id,
      attempt: 0,
      run_at: job?.run_at,
      worker_id: null,
      claimed_at: null,
      cancel_reason: null,
      progress: null,
      waiting_key: null,
      blockers: null,
    });
    expect(Date.parse(String(job?.run_at))).toBeGreaterThan(Date.parse(String(finished_at)));
    expect([state, output]).toEqual(['discarded', null]);
  });

  test('has a fence that goes on, so that nobody of its first life passes for its holder', async () => {
    const [id] = await addDiscarded([{ fence: 3, attempt: 1, workerId: 1 }]);
    await redrive(database.db, { id });
    expect(await claim(database.db, { workerId: 1 })).toMatchObject([{ id, fence: 4, attempt: 1 }]);
    const late = await finishJobs(database.db, tables, { queue: 'q', workerId: 1 }, [
      {
        id,
        fence: 3,
        transition: { type: 'finish', state: 'completed', output: null, error: null, keepResult: true },
      },
    ]);
    expect(late).toEqual(new Set());
  });
});

test('a kind that keeps only outcomes: what failed or was cancelled comes back with its payload', async () => {
  const { id: failed } = await queue.enqueue(database.db, outcomeOnly, { n: 1 });
  const { id: cancelled } = await queue.enqueue(database.db, outcomeOnly, { n: 2 });
  const { id: withdrawn } = await queue.enqueue(database.db, outcomeOnly, { n: 3 });
  const { id: done } = await queue.enqueue(database.db, outcomeOnly, { n: 4 });
  await queue.cancel(database.db, withdrawn);
  const handler = handle(outcomeOnly, ({ payload }) => {
    if (payload.n === 1) throw new NonRetryableError('no');
    return payload.n === 2 ? cancel('gone') : payload.n;
  });
  await drain(database.db, { queue, handlers: [handler], deadlineMs: 10_000 });
  expect(await queue.redrive(database.db, { ids: [failed, cancelled, withdrawn, done] })).toMatchObject({
    redriven: 1,
  });
  expect(await queue.redrive(database.db, { kind: 'outcome-only', state: 'cancelled' })).toMatchObject({
    redriven: 2,
  });
  expect(await queue.redrive(database.db, done)).toEqual({ redriven: 0, duplicates: 0 });
  const payloads = await database.client`select id, payload from queue_jobs order by id`;
  expect(payloads.map(({ id, payload }) => [Number(id), payload])).toEqual([
    [failed, { n: 1 }],
    [cancelled, { n: 2 }],
    [withdrawn, { n: 3 }],
  ]);
  expect(await queue.find(database.db, outcomeOnly, done)).toMatchObject({ payload: undefined, output: 4 });
});

describe('which', () => {
  test('only discarded ones', async () => {
    const ids = await addDiscarded([{}, {}, {}]);
    await database.client`update queue_results set state = 'completed' where job_id = ${ids[0]}`;
    await database.client`update queue_results set state = 'cancelled' where job_id = ${ids[1]}`;
    expect(await redrive(database.db)).toEqual({ redriven: 1, duplicates: 0 });
    expect(await jobRow(database.client, ids[2])).toBeDefined();
    expect(await redrive(database.db, { id: ids[0] })).toEqual({ redriven: 0, duplicates: 0 });
  });

  test('by kind, queue, time and limit, all of them together', async () => {
    const [a, b, c, d, e, f] = await addDiscarded([
      { kind: 'x', queue: 'mail', dueInMs: -50_000 },
      { kind: 'x', queue: 'other', dueInMs: -50_000 },
      { kind: 'y', queue: 'mail', dueInMs: -50_000 },
      { kind: 'x', queue: 'mail', dueInMs: -90_000 },
      { kind: 'x', queue: 'mail', dueInMs: -10_000 },
      { kind: 'x', queue: 'mail', dueInMs: -50_000 },
    ]);
    const [row] = await database.client<{ ms: number }[]>`
      select (extract(epoch from statement_timestamp()) * 1000)::float8 as ms`;
    const filter = {
      kind: 'x',
      queue: 'mail',
      finishedAfter: new Date(Number(row?.ms) - 70_000),
      finishedBefore: new Date(Number(row?.ms) - 30_000),
    };
    expect(await redrive(database.db, { ...filter, limit: 1 })).toEqual({ redriven: 1, duplicates: 0 });
    expect(await jobRow(database.client, a)).toBeDefined();
    expect(await redrive(database.db, filter)).toEqual({ redriven: 1, duplicates: 0 });
    expect(await jobRow(database.client, f)).toBeDefined();
    for (const id of [b, c, d, e]) expect(await resultRow(database.client, id)).toBeDefined();
  });

  test('finishedAfter includes its moment, finishedBefore does not', async () => {
    const [id] = await addDiscarded([{}]);
    await database.client`update queue_results set finished_at = '2024-01-01T00:00:00Z'`;
    const moment = new Date('2024-01-01T00:00:00Z');
    expect(await redrive(database.db, { finishedBefore: moment })).toEqual({ redriven: 0, duplicates: 0 });
    expect(await redrive(database.db, { finishedAfter: moment })).toEqual({ redriven: 1, duplicates: 0 });
    expect(await jobRow(database.client, id)).toBeDefined();
  });
});

describe('unique keys', () => {
  test('a job whose key a live one holds stays discarded, and its result is not lost', async () => {
    const [taken, free] = await addDiscarded([{ uniqueKey: 'a' }, { uniqueKey: 'b' }]);
    await addJobs(database.client, [{ uniqueKey: 'a' }]);
    const result = await resultRow(database.client, taken);
    expect(await redrive(database.db)).toEqual({ redriven: 1, duplicates: 1 });
    expect(await resultRow(database.client, taken)).toEqual(result);
    expect(await jobRow(database.client, taken)).toBeUndefined();
    expect(await jobRow(database.client, free)).toBeDefined();
    await database.client`delete from queue_jobs where id <> ${free}`;
    expect(await redrive(database.db)).toEqual({ redriven: 1, duplicates: 0 });
  });

  test('of two discarded jobs with one key the older comes back', async () => {
    const [older, newer] = await addDiscarded([{ uniqueKey: 'a' }, { uniqueKey: 'a' }]);
    expect(await redrive(database.db)).toEqual({ redriven: 1, duplicates: 1 });
    expect(await jobRow(database.client, older)).toBeDefined();
    expect(await resultRow(database.client, newer)).toBeDefined();
  });

  test('waits for an open enqueue with the key: its end decides', async () => {
    for (const [end, expected] of [
      [commit, { redriven: 0, duplicates: 1 }],
      [rollback, { redriven: 1, duplicates: 0 }],
    ] as const) {
      await clearTables(database.client);
      await addDiscarded([{ uniqueKey: 'a' }]);
      const [one, two] = await twoBackends(database);
      await begin(one);
      await addJobs(one.client, [{ uniqueKey: 'a' }]);
      const redriving = redrive(two.db);
      await untilBlocked(database, two);
      await end(one);
      expect(await redriving).toEqual(expected);
      // One row per job, whoever won: live, or still discarded.
      expect(await counts()).toEqual({ live: 1, results: expected.duplicates });
    }
  });

  test('never deadlocks with a bulk enqueue of the same keys in several queues', async () => {
    const queues = ['p', 'q'] as const;
    const [one, two] = await twoBackends(database);
    for (let round = 0; round < 20; round++) {
      await clearTables(database.client);
      // In each queue the keys run the other way, so that only one order fits both statements.
      const jobs = queues.flatMap((queue, side) =>
        Array.from({ length: 100 }, (_, n) => ({ queue, uniqueKey: `${side === 0 ? 999 - n : 100 + n}` })),
      );
      await addDiscarded(jobs);
      const fresh = jobs.map(({ queue, uniqueKey }) => ({
        queue,
        kind: 'k',
        payload: 'null',
        priority: 5,
        maxAttempts: 20,
        delayMs: 0,
        runAtMs: null,
        uniqueKey,
        metadata: '{}',
      }));
      const [inserted, { redriven, duplicates }] = await Promise.all([
        insertJobs(one.db, tables, fresh),
        redrive(two.db),
      ]);
      expect(inserted.filter((id) => id !== undefined).length + redriven).toBe(jobs.length);
      expect(redriven + duplicates).toBe(jobs.length);
    }
  });
});

describe('two redrives at once', () => {
  test('put each job back once, and neither waits', async () => {
    const ids = await addDiscarded(Array.from({ length: 10 }, () => ({})));
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await redrive(one.db, { limit: 6 })).toEqual({ redriven: 6, duplicates: 0 });
    expect(await redrive(two.db)).toEqual({ redriven: 4, duplicates: 0 });
    await commit(one);
    expect(await counts()).toEqual({ live: ids.length, results: 0 });
  });

  test('one that rolls back leaves its jobs discarded', async () => {
    await addDiscarded([{}, {}]);
    const [one] = await twoBackends(database);
    await begin(one);
    await redrive(one.db);
    await rollback(one);
    expect(await counts()).toEqual({ live: 0, results: 2 });
  });

  test('many at once over thousands of jobs', async () => {
    await addDiscarded(Array.from({ length: 2_000 }, () => ({})));
    const connections = await database.connect(4);
    const redriven = await Promise.all(
      connections.map(async ({ db }) => {
        let sum = 0;
        for (let last = 1; last > 0; sum += last) last = (await redrive(db, { limit: 50 })).redriven;
        return sum;
      }),
    );
    expect(redriven.reduce((a, b) => a + b)).toBe(2_000);
    expect(await counts()).toEqual({ live: 2_000, results: 0 });
  });
});
