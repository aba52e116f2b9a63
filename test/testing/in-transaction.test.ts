import { sql } from 'drizzle-orm';
import { pgSchema } from 'drizzle-orm/pg-core';
import {
  createQueue,
  defineJob,
  defineSchedule,
  type Executor,
  handle,
  limitsIn,
  schedulesIn,
  unvalidated,
} from 'drizzle-queue';
import { createQueueTables, queueJobs } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { drainIn, enqueuedBy, inTransaction } from 'drizzle-queue/testing';
import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { DATABASES, useDatabaseOn } from './open-databases.ts';

const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<number>() });
const other = defineJob('other', { keepResult: false });

describe.each(DATABASES)('on %s', (name) => {
  const database = useDatabaseOn(name);

  test('inTransaction returns what its function does, and leaves nothing', async () => {
    const found = await inTransaction(database.db, async (tx) => {
      const { id } = await queue.enqueue(tx, work, 1);
      return await queue.find(tx, work, id);
    });
    expect(found).toMatchObject({ payload: 1, state: 'due' });
    expect(await database.db.select().from(queueJobs)).toEqual([]);
  });

  test('inTransaction passes an error on, and leaves nothing', async () => {
    const failing = inTransaction(database.db, async (tx) => {
      await queue.enqueue(tx, work, 1);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await database.db.select().from(queueJobs)).toEqual([]);
  });

  test('inTransaction rolls back a transaction that has failed already', async () => {
    const returned = await inTransaction(database.db, async (tx) => {
      await queue.enqueue(tx, work, 1);
      await tx.execute(sql`select 1 / 0`).catch(() => undefined);
      return 'returned';
    });
    expect(returned).toBe('returned');
    expect(await database.db.select().from(queueJobs)).toEqual([]);
  });

  test('inTransaction has empty tables of its own for a queue that it is given', async () => {
    const everything = createQueue({
      keys: control.queueKeys,
      schedules: schedulesIn(control.queueSchedules),
      limits: limitsIn(control, { slow: { concurrency: 1 } }),
    });
    await everything.enqueue(database.db, work, 1);
    const found = await inTransaction(
      database.db,
      async (tx) => {
        // Statements that were prepared for the other tables.
        expect((await everything.list(tx)).jobs).toEqual([]);
        await everything.enqueue(tx, work, 2, { throttle: { key: 'a', perMs: 1_000 } });
        await everything.schedules.set(tx, defineSchedule('often', { job: work, payload: 3, every: 60_000 }));
        const handlers = [handle(work, ({ payload }) => payload)];
        const { completed } = await drainIn(tx, { queue: everything, handlers, until: { minutes: 2 } });
        return completed;
      },
      { queue: everything },
    );
    expect(found).toBeGreaterThan(1);
    expect((await everything.list(database.db)).jobs).toMatchObject([{ payload: 1 }]);
    await database.db.delete(queueJobs);
  });

  test('enqueuedBy tells the jobs of a function, of its savepoints too, and no others', async () => {
    await inTransaction(database.db, async (tx) => {
      await queue.enqueue(tx, work, 1);
      const jobs = await enqueuedBy(tx, queue, async () => {
        await queue.enqueue(tx, work, 2);
        await tx.transaction((savepoint) => queue.enqueue(savepoint, work, 3));
        await tx.transaction(async (savepoint) => {
          await queue.enqueue(savepoint, other);
          await tx.transaction((inner) => queue.enqueue(inner, work, 4, { delayMs: 1_000 }));
        });
      });
      expect(jobs.map(({ kind, payload, state }) => [kind, payload, state])).toEqual([
        ['work', 2, 'due'],
        ['work', 3, 'due'],
        ['other', null, 'due'],
        ['work', 4, 'scheduled'],
      ]);
    });
  });

  test('enqueuedBy tells those of one kind, finished ones too', async () => {
    await inTransaction(database.db, async (tx) => {
      const jobs = await enqueuedBy(
        tx,
        queue,
        async () => {
          const { id } = await queue.enqueue(tx, work, 1);
          await queue.cancel(tx, id, 'no');
          await queue.enqueue(tx, other);
        },
        work,
      );
      expect(jobs).toMatchObject([{ payload: 1, state: 'cancelled' }]);
    });
  });

  test('enqueuedBy tells no job that was refused as a duplicate', async () => {
    await inTransaction(database.db, async (tx) => {
      await queue.enqueue(tx, work, 1, { uniqueKey: 'a' });
      const jobs = await enqueuedBy(tx, queue, () => queue.enqueue(tx, work, 2, { uniqueKey: 'a' }));
      expect(jobs).toEqual([]);
    });
  });
});

describe('beside other transactions', () => {
  const database = useTestDatabase();

  test('enqueuedBy tells none that they commit meanwhile, before it or after', async () => {
    const [beside] = await database.connect();
    await queue.enqueue(database.db, work, 0);
    await inTransaction(database.db, async (tx) => {
      // Its number as a transaction is lower than that of the other one.
      await queue.enqueue(tx, work, 1);
      const jobs = await enqueuedBy(tx, queue, async () => {
        await queue.enqueue(tx, work, 2);
        await beside?.db.transaction((other) => other.transaction((inner) => queue.enqueue(inner, work, 3)));
        await tx.transaction((savepoint) => queue.enqueue(savepoint, work, 4));
      });
      // They are visible, and of no business here.
      expect(await tx.select().from(queueJobs)).toHaveLength(5);
      expect(jobs.map(({ payload }) => payload)).toEqual([2, 4]);
    });
  });

  test('enqueuedBy on a database tells those of everybody', async () => {
    const jobs = await enqueuedBy(database.db, queue, () => queue.enqueue(database.db, work, 5));
    expect(jobs.map(({ payload }) => payload)).toEqual([5]);
  });
});

test('what is no database, queue or function is refused', async () => {
  // @ts-expect-error no database
  await expect(inTransaction(undefined, () => 1)).rejects.toThrow(
    /^inTransaction: .* needs a Drizzle database/,
  );
  // @ts-expect-error no queue
  await expect(enqueuedBy({}, {}, () => 1)).rejects.toThrow(
    'enqueuedBy: queue must be what createQueue() returns; got [object Object]',
  );
});

describe('tests that run at the same time', () => {
  const database = useTestDatabase();
  const signalled = () => {
    let resolve = () => {};
    const promise = new Promise<void>((resolved) => {
      resolve = resolved;
    });
    return { promise, resolve };
  };
  const enqueue = async (tx: Executor, key: string) => queue.enqueue(tx, work, 1, { uniqueKey: key });

  /** Two transactions, each of which enqueues the other's first key as its second. */
  async function cross(options?: { queue: typeof queue }) {
    const connections = await database.connect(2);
    const ready = [signalled(), signalled()];
    return await Promise.allSettled(
      connections.map(({ db }, at) =>
        inTransaction(
          db,
          async (tx) => {
            await enqueue(tx, ['a', 'b'][at] ?? '');
            ready[at]?.resolve();
            await Promise.all(ready.map(({ promise }) => promise));
            await enqueue(tx, ['b', 'a'][at] ?? '');
          },
          options,
        ),
      ),
    );
  }

  test('deadlock on equal unique keys, and are told what to do', async () => {
    const reasons = (await cross()).flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    expect(reasons).toMatchObject([
      { message: expect.stringMatching(/a deadlock.*inTransaction\(db, run, \{ queue \}\)/) },
    ]);
  });

  test('do not wait for each other with tables of their own', async () => {
    expect((await cross({ queue })).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
  });

  test('tables that name their schema are refused', async () => {
    const apart = createQueue({ tables: createQueueTables({ schema: pgSchema('jobs') }) });
    await expect(inTransaction(database.db, () => undefined, { queue: apart })).rejects.toThrow(
      'the table jobs.queue_jobs names its schema',
    );
  });
});
