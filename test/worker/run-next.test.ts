import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob, fixedBackoff, handle, runNext, snooze, unvalidated } from 'drizzle-queue';
import { queueJobs, queueResults } from 'drizzle-queue/schema';
import pg from 'pg';
import postgres from 'postgres';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const effects = pgTable('effects', { n: integer('n').notNull() });
const add = defineJob('add', {
  payload: unvalidated<number>(),
  backoff: fixedBackoff(3_600_000),
  timeoutMs: 5_000,
  maxAttempts: 3,
});

beforeAll(async () => {
  await database.client`create table effects (n int not null)`;
});

beforeEach(async () => {
  await emptyTables(database.client, 'effects', 'queue_jobs', 'queue_results');
});

const written = async () => (await database.db.select().from(effects)).map(({ n }) => n);

type Tx = Parameters<Parameters<typeof database.db.transaction>[0]>[0];
const adding = (then: () => unknown = () => undefined) =>
  handle<typeof add, Tx>(add, async ({ payload, db }) => {
    await db.insert(effects).values({ n: payload });
    return then();
  });

test('a handler that cancels jobs by a filter which fits its own ends as cancelled, and keeps what it has written', async () => {
  const close = defineJob('close', { payload: unvalidated<{ tenant: number }>() });
  const jobs = await queue.enqueueMany(database.db, close, [
    { payload: { tenant: 7 } },
    { payload: { tenant: 7 } },
    { payload: { tenant: 8 } },
  ]);
  const cancelling = handle<typeof close, Tx>(close, async ({ payload: { tenant }, db }) => {
    await db.insert(effects).values({ n: tenant });
    expect(await queue.cancelMany(db, { payload: { tenant } })).toMatchObject({ cancelled: 2 });
  });
  const ran = await runNext(database.db, { queue, handlers: [cancelling] });
  expect(ran).toMatchObject({ job: { id: jobs[0]?.id }, outcome: 'cancelled' });
  const states = await Promise.all(jobs.map(async ({ id }) => (await queue.find(database.db, id))?.state));
  expect(states).toEqual(['cancelled', 'cancelled', 'due']);
  expect(await written()).toEqual([7]);
});

describe('runNext beside jobs that nobody serves', () => {
  const work = defineJob('work', { payload: unvalidated<number>() });

  async function fillUnserved(): Promise<void> {
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
      select 'default', 'unserved', 'null', 20, now() - interval '2 days' + n * interval '1 ms'
      from generate_series(1, 50000) as n`;
  }

  test('walks over them once, and then goes on where it was', async () => {
    await fillUnserved();
    const floors: string[] = [];
    const client = postgres(database.url, {
      max: 1,
      debug: (_, text, parameters) => {
        if (!text.includes('skip locked')) return;
        const bands = parameters.map(String).find((value) => value.includes('floor')) ?? '[]';
        floors.push(JSON.parse(bands)[work.priority].floor);
      },
    });
    const db = drizzle({ client });
    await queue.enqueueMany(
      db,
      work,
      [1, 2, 3].map((payload) => ({ payload })),
    );
    const options = { queue, handlers: [handle(work, () => {})] };
    for (const payload of [1, 2, 3]) expect(await runNext(db, options)).toMatchObject({ job: { payload } });
    // The last one says that nothing is left at all.
    expect(await runNext(db, options)).toBeUndefined();
    await client.end();
    expect(floors.map((floor) => floor === '-infinity')).toEqual([true, false, false, false, true]);
  });

  test('finds what lies before the place where it was', async () => {
    await fillUnserved();
    const options = { queue, handlers: [handle(work, () => {})] };
    await queue.enqueue(database.db, work, 1);
    expect(await runNext(database.db, options)).toMatchObject({ job: { payload: 1 } });
    await queue.enqueue(database.db, work, 2, { runAt: new Date(Date.now() - 24 * 3_600_000) });
    expect(await runNext(database.db, options)).toMatchObject({ job: { payload: 2 } });
  });
});

describe('runNext of one job', () => {
  test('runs that job and leaves the others, which stand before it', async () => {
    await queue.enqueue(database.db, add, 1, { priority: 0 });
    const { id } = await queue.enqueue(database.db, add, 2);
    const options = { queue, handlers: [adding()], id };
    expect(await runNext(database.db, options)).toMatchObject({ job: { id }, outcome: 'completed' });
    expect(await written()).toEqual([2]);
    expect(await runNext(database.db, options)).toBeUndefined();
    expect(await database.db.select().from(queueJobs)).toMatchObject([{ payload: 1, attempt: 0 }]);
  });

  test('runs none that is not due, of another kind, or in a paused queue', async () => {
    const later = await queue.enqueue(database.db, add, 1, { delayMs: 60_000 });
    const other = await queue.enqueue(database.db, defineJob('other'));
    const due = await queue.enqueue(database.db, add, 2);
    await queue.pause(database.db, 'default');
    for (const { id } of [later, other, due]) {
      expect(await runNext(database.db, { queue, handlers: [adding()], id })).toBeUndefined();
    }
    await queue.resume(database.db, 'default');
    expect(await runNext(database.db, { queue, handlers: [adding()], id: due.id })).toBeDefined();
  });

  test('two of them run it once', async () => {
    const { id } = await queue.enqueue(database.db, add, 1);
    const [one, other] = await database.connect(2);
    const ran = await Promise.all(
      [one, other].map((connection) =>
        runNext(connection?.db ?? database.db, { queue, handlers: [adding()], id }),
      ),
    );
    expect(ran.filter((job) => job !== undefined)).toMatchObject([{ job: { id, attempt: 1 } }]);
    expect(await written()).toEqual([1]);
  });

  test('while one runs it, another finds nothing to run, and does not wait', async () => {
    const { id } = await queue.enqueue(database.db, add, 1);
    const [one, other] = await database.connect(2);
    if (one === undefined || other === undefined) throw new Error('two connections were asked for');
    const beside: unknown[] = [];
    const handlers = [
      adding(async () => {
        beside.push(await runNext(other.db, { queue, handlers: [adding()], id }));
      }),
    ];
    expect(await runNext(one.db, { queue, handlers, id })).toMatchObject({
      job: { id },
      outcome: 'completed',
    });
    expect(beside).toEqual([undefined]);
    expect(await written()).toEqual([1]);
  });

  test('refuses what is no id', async () => {
    // @ts-expect-error a text
    const wrong = runNext(database.db, { queue, handlers: [adding()], id: '1' });
    await expect(wrong).rejects.toThrow("runNext: id must be a job id, a whole number above 0; got '1'");
  });
});

describe('runNext', () => {
  test('answers undefined when nothing is due', async () => {
    await queue.enqueue(database.db, add, 1, { delayMs: 60_000 });
    expect(await runNext(database.db, { queue, handlers: [adding()] })).toBeUndefined();
  });

  test('commits the handler’s writes and the end of the job together', async () => {
    const { id } = await queue.enqueue(database.db, add, 1);
    expect(await runNext(database.db, { queue, handlers: [adding()] })).toMatchObject({
      job: { id, attempt: 1 },
      outcome: 'completed',
    });
    expect(await written()).toEqual([1]);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', workerId: null });
  });

  test('undoes the writes of a failed attempt and keeps the failure', async () => {
    const { id } = await queue.enqueue(database.db, add, 1);
    const ran = await runNext(database.db, {
      queue,
      handlers: [
        adding(() => {
          throw new Error('no');
        }),
      ],
    });
    expect(ran).toMatchObject({ outcome: 'failed', error: { message: 'no' } });
    expect(await written()).toEqual([]);
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'scheduled',
      attempt: 1,
      errors: [{ message: 'no' }],
    });
  });

  test('a failed query that the handler swallows is a failed attempt', async () => {
    const { id } = await queue.enqueue(database.db, add, 1);
    const ran = await runNext(database.db, {
      queue,
      handlers: [
        handle<typeof add, Tx>(add, async ({ db }) => {
          await db.execute('select 1 / 0').then(undefined, () => undefined);
        }),
      ],
    });
    expect(ran).toMatchObject({ outcome: 'failed' });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'scheduled', attempt: 1 });
  });

  test('holds the job for as long as the handler runs, for every other claim', async () => {
    await queue.enqueue(database.db, add, 1);
    const [other] = await database.connect();
    let inside: unknown = 'not run';
    await runNext(database.db, {
      queue,
      handlers: [
        handle<typeof add, Tx>(add, async () => {
          inside = await runNext(other?.db ?? database.db, { queue, handlers: [adding()] });
        }),
      ],
    });
    expect(inside).toBeUndefined();
  });

  test('complete(db) ends the job inside; in a savepoint that rolls back it does not', async () => {
    const [kept, undone] = await queue.enqueueMany(database.db, add, [{ payload: 1 }, { payload: 2 }]);
    const handlers = [
      handle<typeof add, Tx>(add, async ({ payload, db, complete }) => {
        await db
          .transaction(async (savepoint) => {
            await savepoint.insert(effects).values({ n: payload });
            await complete(savepoint, { n: payload });
            if (payload === 2) savepoint.rollback();
          })
          .catch(() => undefined);
      }),
    ];
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'failed' });
    expect(await written()).toEqual([1]);
    expect(await queue.find(database.db, kept?.id ?? 0)).toMatchObject({
      state: 'completed',
      output: { n: 1 },
    });
    expect(await queue.find(database.db, undone?.id ?? 0)).toMatchObject({
      state: 'scheduled',
      errors: [{ message: expect.stringContaining('did not commit') }],
    });
  });

  test('complete in a transaction of another connection is refused instead of waiting for ever', async () => {
    await queue.enqueue(database.db, add, 1);
    const ran = await runNext(database.db, {
      queue,
      handlers: [
        handle<typeof add, Tx>(add, ({ complete }) => database.db.transaction((tx) => complete(tx))),
      ],
    });
    expect(ran).toMatchObject({
      outcome: 'failed',
      error: { message: expect.stringContaining('takes a transaction inside that of the context') },
    });
  });

  test('snooze keeps the writes and gives the attempt back', async () => {
    const { id } = await queue.enqueue(database.db, add, 1);
    expect(await runNext(database.db, { queue, handlers: [adding(() => snooze(60_000))] })).toMatchObject({
      outcome: 'snoozed',
    });
    expect(await written()).toEqual([1]);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'scheduled', attempt: 0 });
  });

  test('after a timeout everything rolls back, and the failure is recorded', async () => {
    const hanging = defineJob('hanging', { timeoutMs: 50, backoff: fixedBackoff(3_600_000) });
    const { id } = await queue.enqueue(database.db, hanging);
    const ran = await runNext(database.db, {
      queue,
      handlers: [
        handle<typeof hanging, Tx>(hanging, async ({ db }) => {
          await db.insert(effects).values({ n: 9 });
          await new Promise(() => {});
        }),
      ],
    });
    expect(ran).toMatchObject({ outcome: 'failed', error: { name: 'JobTimeoutError' } });
    expect(await written()).toEqual([]);
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'scheduled',
      attempt: 1,
      errors: [{ name: 'JobTimeoutError' }],
    });
  });

  describe('a handler that is told of its deadline and returns', () => {
    // Long enough for the way to its handler, on a busy machine too.
    const late = defineJob('late', { deadlineMs: 3_000 });
    const running = (complete: boolean) =>
      handle<typeof late, Tx>(late, async ({ db, signal, complete: end }) => {
        await db.insert(effects).values({ n: 1 });
        if (complete) await end(db);
        await until(() => signal.aborted);
        expect(signal.reason).toMatchObject({ name: 'JobDeadlineError' });
      });

    test.each([false, true])(
      'has completed its job with what it wrote; by complete: %s',
      async (complete) => {
        const { id } = await queue.enqueue(database.db, late);
        const ran = await runNext(database.db, { queue, handlers: [running(complete)] });
        expect(await written()).toEqual([1]);
        expect(ran).toMatchObject({ outcome: 'completed' });
        expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed' });
      },
    );
  });

  test('looks in the queues it is given, in their order, and only for its handlers’ kinds', async () => {
    await queue.enqueue(database.db, add, 1, { queue: 'b' });
    await queue.enqueue(database.db, add, 2, { queue: 'a' });
    await queue.enqueue(database.db, defineJob('other'), undefined, { queue: 'a' });
    const options = { queue, handlers: [adding()], queues: ['a', 'b'] };
    expect(await runNext(database.db, options)).toMatchObject({ job: { payload: 2 } });
    expect(await runNext(database.db, options)).toMatchObject({ job: { payload: 1 } });
    expect(await runNext(database.db, options)).toBeUndefined();
    expect(await database.db.select().from(queueJobs)).toHaveLength(1);
  });

  test('two at once never run the same job', async () => {
    await queue.enqueueMany(
      database.db,
      add,
      Array.from({ length: 40 }, (_, n) => ({ payload: n })),
    );
    const connections = await database.connect(4);
    await Promise.all(
      connections.map(async ({ db }) => {
        while ((await runNext(db, { queue, handlers: [adding()] })) !== undefined);
      }),
    );
    expect((await written()).sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, n) => n));
  });
});

describe('a timeout in runNext', () => {
  const hanging = defineJob('hanging', { timeoutMs: 30, backoff: fixedBackoff(0), maxAttempts: 2 });
  const handlers = [handle<typeof hanging, Tx>(hanging, () => new Promise(() => {}))];

  test('on the last attempt discards, with the right count and a fence that has gone on', async () => {
    const { id } = await queue.enqueue(database.db, hanging);
    await runNext(database.db, { queue, handlers });
    await runNext(database.db, { queue, handlers });
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'discarded',
      attempt: 2,
      errors: [{ attempt: 1 }, { attempt: 2 }],
    });
    const [result] = await database.db.select().from(queueResults);
    expect((result?.fence ?? 0) - (result?.createdAt.getTime() ?? 0)).toBe(2);
  });

  test('is recorded for a job that was taken over from a worker that is gone', async () => {
    const { id } = await queue.enqueue(database.db, hanging);
    await database.db
      .update(queueJobs)
      .set({ workerId: 999_999, attempt: 1, fence: 1, claimedAt: new Date() });
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'failed' });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'discarded', attempt: 2 });
  });
});

test('a connection that breaks while the handler runs is what runNext rejects with', async () => {
  const { id } = await queue.enqueue(database.db, add, 1);
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  pool.on('error', () => undefined);
  onTestFinished(() => pool.end());
  const client = await pool.connect();
  const [{ pid }] = (await client.query('select pg_backend_pid() as pid')).rows;
  const hasEnded = new Promise((resolve) => client.once('end', resolve));
  client.release();
  const handlers = [
    handle(add, async () => {
      await database.client`select pg_terminate_backend(${pid}, 10000)`;
      await hasEnded;
    }),
  ];
  await expect(runNext(drizzlePg({ client: pool }), { queue, handlers })).rejects.toThrow(
    /terminating connection|Connection terminated/,
  );
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
});
