import { AsyncLocalStorage } from 'node:async_hooks';
import { sql } from 'drizzle-orm';
import { type Around, createQueue, defineJob, type JobToEnqueue, unvalidated } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { beforeEach, describe, expect, test } from 'vitest';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const remind = defineJob('remind', {
  payload: unvalidated<{ userId: number }>(),
  queue: 'mail',
  priority: 3,
});

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results');
});

type Enqueue = NonNullable<Around['enqueue']>;
const queueAround = (enqueue: Enqueue) => createQueue({ around: { enqueue } });
const rows = () => database.db.select().from(queueJobs).orderBy(queueJobs.id);
const select = () =>
  database.db.select({ userId: sql<number>`n`.as('user_id') }).from(sql`generate_series(1, 3) n`);

/** Each way to enqueue, as one call. */
const ways: Record<string, (enqueue: Enqueue) => PromiseLike<unknown>> = {
  enqueue: (around) => queueAround(around).enqueue(database.db, remind, { userId: 1 }),
  enqueueMany: (around) => queueAround(around).enqueueMany(database.db, remind, [{ payload: { userId: 1 } }]),
  enqueueFrom: (around) => queueAround(around).enqueueFrom(database.db, remind, select()),
  enqueueQuery: async (around) => await queueAround(around).enqueueQuery(database.db, remind, { userId: 1 }),
};

describe('around.enqueue', () => {
  test('sees the jobs of an enqueue, and what became of them', async () => {
    const seen: unknown[] = [];
    const queue = queueAround(async (jobs, next) => {
      seen.push(jobs, await next());
    });
    const options = { uniqueKey: 'k', metadata: { a: 1 } };
    const enqueued = await queue.enqueue(database.db, remind, { userId: 7 }, options);
    const shown = { kind: 'remind', queue: 'mail', priority: 3, payload: { userId: 7 }, ...options };
    expect(seen).toEqual([[shown], [enqueued]]);
    expect(enqueued).toEqual({ id: expect.any(Number), duplicate: false, outcome: 'enqueued' });
    const again = await queue.enqueue(database.db, remind, { userId: 7 }, options);
    expect(seen[3]).toEqual([{ id: enqueued.id, duplicate: true, outcome: 'duplicate' }]);
    expect(again).toEqual({ id: enqueued.id, duplicate: true, outcome: 'duplicate' });
  });

  test('is called once for all jobs of an enqueueMany, and not at all for none', async () => {
    const seen: (readonly JobToEnqueue[])[] = [];
    const queue = queueAround((jobs, next) => {
      seen.push(jobs);
      return next();
    });
    const entries = [{ payload: { userId: 1 } }, { payload: { userId: 2 }, queue: 'other' }];
    expect(await queue.enqueueMany(database.db, remind, entries)).toHaveLength(2);
    expect(await queue.enqueueMany(database.db, remind, [])).toEqual([]);
    expect(seen.map((jobs) => jobs.map(({ queue, payload }) => [queue, payload]))).toEqual([
      [
        ['mail', { userId: 1 }],
        ['other', { userId: 2 }],
      ],
    ]);
  });

  test.each(Object.entries(ways))('adds to the metadata of what %s puts in', async (_way, enqueue) => {
    await enqueue(async (jobs, next) => {
      for (const job of jobs) job.metadata.traceparent = '00-abc';
      await next();
    });
    const stored = await rows();
    expect(stored.length).toBeGreaterThan(0);
    for (const { metadata } of stored) expect(metadata).toEqual({ traceparent: '00-abc' });
  });

  test.each(Object.entries(ways))(
    'an error thrown before next() is the error of %s, and nothing is sent',
    async (way, enqueue) => {
      const error = new Error('no tenant');
      const thrown = enqueue(() => {
        throw error;
      });
      await expect(thrown).rejects.toBe(error);
      // An async function's error comes too late for a query that is answered at once.
      const rejected = enqueue(async () => {
        throw error;
      });
      if (way === 'enqueueQuery') await expect(rejected).rejects.toThrow(/did not call next\(\) before/);
      else await expect(rejected).rejects.toBe(error);
      expect(await rows()).toEqual([]);
    },
  );

  test.each(Object.entries(ways))('that never calls next is told so by %s', async (_way, enqueue) => {
    await expect(enqueue(() => undefined)).rejects.toThrow(/around\.enqueue did not call next\(\)/);
    expect(await rows()).toEqual([]);
  });

  test.each(Object.entries(ways))(
    'that calls next twice in %s puts the jobs in once',
    async (way, enqueue) => {
      const twice = enqueue(async (_jobs, next) => {
        await Promise.all([next(), next()]);
      });
      if (way === 'enqueueQuery') await twice;
      else await expect(twice).rejects.toThrow('around.enqueue called next() twice');
      expect(await rows()).toHaveLength(way === 'enqueueFrom' ? 3 : 1);
    },
  );

  test('that calls next when it has ended already does nothing', async () => {
    let late: (() => Promise<unknown>) | undefined;
    const forgets: Enqueue = (_jobs, next) => {
      late = next;
    };
    for (const enqueue of Object.values(ways)) {
      await expect(enqueue(forgets)).rejects.toThrow(/did not call next/);
      await expect(late?.()).rejects.toThrow(/next\(\)/);
    }
    expect(await rows()).toEqual([]);
  });

  test('cannot change the list of jobs, nor what is stored of them but the metadata', async () => {
    const enqueue = (change: (jobs: JobToEnqueue[]) => unknown) =>
      queueAround((jobs, next) => {
        change(jobs as JobToEnqueue[]);
        return next();
      }).enqueue(database.db, remind, { userId: 1 });
    await expect(enqueue((jobs) => jobs.pop())).rejects.toThrow(TypeError);
    await expect(enqueue((jobs) => jobs.push(...jobs))).rejects.toThrow(TypeError);
    await expect(enqueue(([job]) => Object.assign(job ?? {}, { queue: 'other' }))).rejects.toThrow(TypeError);
    await expect(enqueue(([job]) => Object.assign(job ?? {}, { metadata: 5 }))).rejects.toThrow(TypeError);
    expect(await rows()).toEqual([]);
    await enqueue(([job]) => Object.assign(Object(job?.payload), { userId: 'changed' }));
    expect(await rows()).toMatchObject([{ queue: 'mail', payload: { userId: 1 }, metadata: {} }]);
  });

  test('metadata that cannot be stored is refused, and the transaction stays usable', async () => {
    const queue = queueAround((jobs, next) => {
      for (const job of jobs) job.metadata.big = 1n;
      return next();
    });
    await database.db.transaction(async (tx) => {
      await expect(queue.enqueue(tx, remind, { userId: 1 })).rejects.toThrow(/metadata/);
      expect(() => queue.enqueueQuery(database.db, remind, { userId: 1 })).toThrow(/metadata/);
      await createQueue().enqueue(tx, remind, { userId: 2 });
    });
    expect(await rows()).toMatchObject([{ payload: { userId: 2 } }]);
  });

  test('an error of the insert reaches the caller, even if it is caught here; what is returned here does not', async () => {
    const queue = queueAround(async (_jobs, next) => {
      await next().catch(() => undefined);
      return [{ id: -1, duplicate: false, outcome: 'enqueued' }];
    });
    const lost = database.db.transaction(async (tx) => {
      await tx.execute(sql`set local statement_timeout = 1`);
      await queue.enqueueFrom(
        tx,
        remind,
        database.db
          .select({ userId: sql<number>`n`.as('user_id') })
          .from(sql`(select 1 as n from pg_sleep(1)) t`),
      );
    });
    await expect(lost).rejects.toMatchObject({ cause: { code: '57014' } });
    expect((await queue.enqueue(database.db, remind, { userId: 1 })).id).toBeGreaterThan(0);
  });

  test('runs in the caller’s asynchronous context, and its own reaches the insert', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const queue = queueAround((_jobs, next) => {
      seen.push(storage.getStore());
      return storage.run('inside', next);
    });
    await storage.run('request', () => queue.enqueue(database.db, remind, { userId: 1 }));
    expect(seen).toEqual(['request']);
  });

  test('is not called for what is refused', async () => {
    const queue = queueAround(() => expect.fail('called'));
    await expect(queue.enqueue(database.db, remind, { userId: 1 }, { priority: 11 })).rejects.toThrow(
      RangeError,
    );
  });
});

test('createQueue refuses what is no function', () => {
  // @ts-expect-error a text
  expect(() => createQueue({ around: { enqueue: 'x' } })).toThrow(/around\.enqueue must be a function/);
  // @ts-expect-error an object
  expect(() => createQueue({ around: { run: {} } })).toThrow(/around\.run must be a function/);
  // @ts-expect-error a function
  expect(() => createQueue({ around: () => {} })).toThrow(TypeError);
});
