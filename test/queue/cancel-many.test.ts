import { sql } from 'drizzle-orm';
import {
  type CancelManyResult,
  createQueue,
  createWorker,
  defineJob,
  handle,
  JobCancelledError,
  limitsIn,
  unvalidated,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeEach, describe, expect, test } from 'vitest';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { queryRows } from '../../src/core/sql/executor.ts';
import {
  addGrouped,
  addWorkers,
  claimGroups,
  clearGroups,
  groupedTables,
} from '../queries/support/groups.ts';
import {
  addJob,
  addJobs,
  claim,
  clearTables,
  fillJobs,
  jobRow,
  resultRow,
  tables,
} from '../queries/support/jobs.ts';
import { begin, commit, twoBackends } from '../queries/support/locks.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { intercepted, untouched } from './support/executors.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<{ tenant: number }>(), queue: 'q' });

beforeEach(() => clearTables(database.client));

const nothing: CancelManyResult = { cancelled: 0, requested: 0, locked: 0 };
const idsLeft = async () =>
  (await database.client`select id from queue_jobs order by id`).map(({ id }) => Number(id));

describe('the filter', () => {
  test('by kind, queue, state, payload and time, alone and together', async () => {
    const [a, b, c, d, e] = await addJobs(database.client, [
      { kind: 'a' },
      { kind: 'b', queue: 'other' },
      { kind: 'c', dueInMs: 60_000 },
      { kind: 'd', payload: { tenant: 7, tags: ['x', 'y'] } },
      { kind: 'e' },
    ]);
    await database.client`update queue_jobs set created_at = '2020-01-01' where id = ${e}`;
    const { db } = database;
    expect(await queue.cancelMany(db, { kind: 'a' })).toEqual({ ...nothing, cancelled: 1 });
    expect(await queue.cancelMany(db, { queue: 'other', kind: 'a' })).toEqual(nothing);
    expect(await queue.cancelMany(db, { queue: 'other' })).toEqual({ ...nothing, cancelled: 1 });
    expect(await queue.cancelMany(db, { state: 'scheduled' })).toEqual({ ...nothing, cancelled: 1 });
    expect(await queue.cancelMany(db, { payload: { tenant: 8 } })).toEqual(nothing);
    expect(await queue.cancelMany(db, { createdBefore: new Date('2021-01-01') })).toMatchObject({
      cancelled: 1,
    });
    expect(await idsLeft()).toEqual([d]);
    expect(await queue.cancelMany(db, { payload: { tags: ['y'] } }, { reason: 'wrong' })).toMatchObject({
      cancelled: 1,
    });
    expect(await queue.find(db, d)).toMatchObject({
      state: 'cancelled',
      errors: [{ attempt: 0, name: 'Cancelled', message: 'wrong', at: expect.any(String) }],
    });
    for (const id of [a, b, c, e])
      expect(await resultRow(database.client, id)).toMatchObject({ state: 'cancelled' });
  });

  test('all: everything live, asking those that run; with force, those too', async () => {
    const [waiting, running] = await addJobs(database.client, [{}, { workerId: 3, attempt: 2 }]);
    expect(await queue.cancelMany(database.db, { all: true }, { reason: 'enough' })).toEqual({
      cancelled: 1,
      requested: 1,
      locked: 0,
    });
    expect(await resultRow(database.client, waiting)).toMatchObject({ state: 'cancelled' });
    expect(await jobRow(database.client, running)).toMatchObject({ cancel_reason: 'enough' });
    // It was asked already, so there is nothing left to do.
    expect(await queue.cancelMany(database.db, { all: true })).toEqual(nothing);
    expect(await queue.cancelMany(database.db, { all: true }, { force: true })).toEqual({
      ...nothing,
      cancelled: 1,
    });
    expect(await resultRow(database.client, running)).toMatchObject({
      state: 'cancelled',
      errors: [{ attempt: 2 }],
    });
  });

  test('limit takes the oldest ids, over all queues together', async () => {
    const ids = await addJobs(database.client, [
      { queue: 'b' },
      { queue: 'a' },
      { queue: 'b' },
      { queue: 'a' },
    ]);
    expect(await queue.cancelMany(database.db, { all: true, limit: 3 }, { batchSize: 1 })).toMatchObject({
      cancelled: 3,
    });
    expect(await idsLeft()).toEqual([ids[3]]);
  });
});

describe('batches', () => {
  test('report the sums so far, and stop at an aborted signal; what is done stays', async () => {
    await fillJobs(database.client, 25);
    const seen: number[] = [];
    const controller = new AbortController();
    const reason = new Error('enough');
    const aborted = queue.cancelMany(
      database.db,
      { queue: 'q' },
      {
        batchSize: 10,
        signal: controller.signal,
        onProgress: ({ cancelled }) => {
          seen.push(cancelled);
          if (cancelled === 20) controller.abort(reason);
        },
      },
    );
    await expect(aborted).rejects.toBe(reason);
    expect(seen).toEqual([10, 20]);
    expect(await idsLeft()).toHaveLength(5);
    expect(await queue.cancelMany(database.db, { queue: 'q' })).toEqual({ ...nothing, cancelled: 5 });
  });

  test('are not meant for jobs that are enqueued meanwhile', async () => {
    await fillJobs(database.client, 20);
    const { cancelled } = await queue.cancelMany(
      intercepted(database.db, () => fillJobs(database.client, 5)),
      { queue: 'q' },
      { batchSize: 5 },
    );
    // The five that came before the first look were there when it looked.
    expect(cancelled).toBe(25);
    expect((await idsLeft()).length).toBeGreaterThan(0);
  });

  test('of a transaction all roll back with it', async () => {
    await fillJobs(database.client, 5);
    const rolledBack = database.db.transaction(async (tx) => {
      expect(await queue.cancelMany(tx, { all: true }, { batchSize: 2 })).toMatchObject({ cancelled: 5 });
      tx.rollback();
    });
    await expect(rolledBack).rejects.toThrow();
    expect(await idsLeft()).toHaveLength(5);
  });
});

test('in many queues: the jobs of other queues are not read again for each', async () => {
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts, worker_id)
    select 'q' || n % 200, 'k', '1', 1, case when n % 100 = 0 then 7 end from generate_series(1, 10000) as n`;
  await database.client`analyze queue_jobs`;
  const answer = await database.db.transaction(async (tx) => {
    const cancelled = await queue.cancelMany(tx, { all: true }, { reason: 'no' });
    const [row] = await queryRows(
      tx,
      tables,
      sql`
      select sum(pg_stat_get_xact_tuples_returned(c.oid))::float8 as read from pg_class as c
      where c.oid = 'queue_jobs'::regclass
        or c.oid in (select indexrelid from pg_index where indrelid = 'queue_jobs'::regclass)`,
    );
    return { ...cancelled, read: Number(row?.read) };
  });
  expect(answer).toMatchObject({ cancelled: 9_900, requested: 100, locked: 0 });
  expect(answer.read).toBeLessThan(100_000);
});

describe('beside others', () => {
  test('a job that a claim has taken since the look is asked to end, and not ended', async () => {
    const id = await addJob(database.client, { kind: 'k' });
    const answer = await queue.cancelMany(
      intercepted(database.db, async (_, sent) => {
        if (sent.length === 1) expect(await claim(database.db)).toHaveLength(1);
      }),
      { kind: 'k' },
    );
    expect(answer).toEqual({ ...nothing, requested: 1 });
    expect(await jobRow(database.client, id)).toMatchObject({ worker_id: 1, cancel_reason: 'cancelled' });
  });

  test('one that no longer fits the filter stays as it is', async () => {
    const id = await addJob(database.client, { kind: 'k' });
    const answer = await queue.cancelMany(
      intercepted(database.db, async (_, sent) => {
        if (sent.length === 1) await claim(database.db);
      }),
      { state: 'due' },
    );
    expect(answer).toEqual(nothing);
    expect(await jobRow(database.client, id)).toMatchObject({ worker_id: 1, cancel_reason: null });
  });

  test('a locked job is waited for briefly, left alone, and counted', async () => {
    const [a] = await twoBackends(database);
    const [locked] = await addJobs(database.client, [{}, {}, {}]);
    await begin(a);
    await a.client`select from queue_jobs where queue = 'q' and id = ${locked} for update`;
    expect(await queue.cancelMany(database.db, { all: true })).toEqual({
      cancelled: 2,
      requested: 0,
      locked: 1,
    });
    await commit(a);
    expect(await queue.cancelMany(database.db, { all: true })).toEqual({ ...nothing, cancelled: 1 });
  });

  test('two at once end each job once', async () => {
    await fillJobs(database.client, 200);
    const [a, b] = await Promise.all(
      [0, 1].map(() => queue.cancelMany(database.db, { all: true }, { batchSize: 7 })),
    );
    expect(Number(a?.cancelled) + Number(b?.cancelled)).toBe(200);
    const [row] = await database.client`select count(*)::int as results from queue_results`;
    expect(row).toMatchObject({ results: 200 });
  });

  test('workers that claim and run all the time: each job has one end, and none runs after its cancel', async () => {
    const ran = new Set<number>();
    const aborted = new Set<number>();
    const worker = createWorker(database.db, {
      queue,
      concurrency: 20,
      handlers: [
        handle(work, async ({ job, signal }) => {
          ran.add(job.id);
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, 20);
            signal.addEventListener('abort', () => {
              clearTimeout(timer);
              resolve();
            });
          });
          if (signal.reason instanceof JobCancelledError) {
            aborted.add(job.id);
            throw signal.reason;
          }
        }),
      ],
    });
    const entries = Array.from({ length: 2_000 }, () => ({ payload: { tenant: 1 } }));
    const enqueued = await queue.enqueueMany(database.db, work, entries);
    worker.start();
    await until(() => ran.size > 20);
    const answer = await queue.cancelMany(database.db, { kind: 'work' }, { batchSize: 50 });
    await until(async () => (await idsLeft()).length === 0);
    await worker.stop();
    const rows = await database.client<{ id: string; state: string; errors: number }[]>`
      select job_id as id, state, jsonb_array_length(errors) as errors from queue_results`;
    expect(rows).toHaveLength(enqueued.length);
    const cancelledUnrun = rows.filter(({ id, state }) => state === 'cancelled' && !ran.has(Number(id)));
    expect(cancelledUnrun.length).toBeGreaterThan(0);
    expect(answer.cancelled + answer.requested).toBeGreaterThanOrEqual(cancelledUnrun.length);
    for (const id of aborted) expect(rows.find((row) => Number(row.id) === id)?.state).toBe('cancelled');
  });
});

test('of a group: one that held up those behind it lets them go on', async () => {
  await addControlTables(database);
  await clearGroups(database.client);
  const grouped = createQueue({ limits: limitsIn(control, { q: { groups: { serial: 'end' } } }) });
  const [worker = 0] = await addWorkers(database.client);
  const take = async () =>
    (await claimGroups(database.db, worker, { limits: { run: 1 } }, 'end')).jobs.map(({ id }) => id);
  const [first = 0, second, elsewhere] = await addGrouped(database.client, [
    { group: 'a' },
    { group: 'a' },
    { group: 'b', dueInMs: 60_000 },
  ]);
  const taken = await claimGroups(database.db, worker, { limits: { run: 1 } }, 'end');
  const error = { attempt: 1, name: 'Error', message: 'no' };
  await rescheduleJobs(
    database.db,
    groupedTables('end'),
    { queue: 'q', workerId: worker },
    taken.jobs.map(({ id, fence }) => ({
      id,
      fence,
      transition: { type: 'reschedule', delayMs: 3_600_000, attempt: 1, error },
    })),
  );
  expect(await take()).toEqual([]);
  const filter = { queue: 'q', group: 'a', limit: 1 };
  expect(await grouped.cancelMany(database.db, filter)).toEqual({ ...nothing, cancelled: 1 });
  expect(await resultRow(database.client, first)).toMatchObject({ state: 'cancelled', group_key: 'a' });
  expect(await take()).toEqual([second]);
  expect(await idsLeft()).toEqual([second, elsewhere]);
});

describe('bad input is refused before anything is sent', () => {
  test.each<[what: string, filter: unknown, error: typeof Error, message: RegExp]>([
    ['nothing', undefined, TypeError, /filter must be an object/],
    ['an empty filter', {}, TypeError, /must have one of ids, kind, .*; every job is \{ all: true \}/],
    ['only a limit', { limit: 5 }, TypeError, /must have one of ids, kind/],
    ['a variable that was never set', { kind: 'a', queue: undefined }, TypeError, /queue is undefined/],
    ['a payload that was never set', { payload: undefined }, TypeError, /payload is undefined/],
    ['a misspelt name', { knd: 'a' }, TypeError, /did you mean kind\?/],
    ['all with more', { all: true, kind: 'a' }, TypeError, /all and kind cannot be combined/],
    ['all: false', { all: false }, TypeError, /all must be true/],
    [
      'a final state',
      { state: 'completed' },
      TypeError,
      /state must be one of scheduled, due, running, waiting/,
    ],
    ['a group without its queue', { group: 'g' }, TypeError, /group needs queue/],
    ['no date', { createdAfter: 'today' }, RangeError, /createdAfter must be a valid Date/],
    ['a payload that is no JSON', { payload: { n: Number.NaN } }, TypeError, /payload at n: NaN/],
    ['a limit of 0', { all: true, limit: 0 }, RangeError, /limit/],
    ['an id', 5, TypeError, /filter must be an object/],
  ])('%s', async (_, filter, error, message) => {
    // @ts-expect-error wrong on purpose
    const refused = queue.cancelMany(untouched(), filter);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toThrow(error);
  });

  test.each<[what: string, options: unknown, error: typeof Error, message: RegExp]>([
    ['batchSize 0', { batchSize: 0 }, RangeError, /batchSize must be a whole number from 1 to 10000/],
    ['a progress that is no function', { onProgress: true }, TypeError, /onProgress must be a function/],
    ['a signal that is none', { signal: 'no' }, TypeError, /signal must be an AbortSignal/],
    ['force that is a text', { force: 'yes' }, TypeError, /force must be true or false/],
    ['a misspelt option', { batch: 5 }, TypeError, /did you mean batchSize\?/],
  ])('%s', async (_, options, error, message) => {
    // @ts-expect-error wrong on purpose
    const refused = queue.cancelMany(untouched(), { all: true }, options);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toThrow(error);
  });
});

test('by ids: these and no other, running ones are asked to end', async () => {
  const [a, b, c, d] = await addJobs(database.client, [
    {},
    { workerId: 4 },
    {},
    { queue: 'other', dueInMs: 9_000 },
  ]);
  const { db } = database;
  expect(await queue.cancelMany(db, { ids: [] })).toEqual(nothing);
  expect(await queue.cancelMany(db, { ids: [a, b, d, 999_999] }, { batchSize: 1 })).toEqual({
    cancelled: 2,
    requested: 1,
    locked: 0,
  });
  expect(await idsLeft()).toEqual([b, c]);
});
