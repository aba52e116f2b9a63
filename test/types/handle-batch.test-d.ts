import { text } from 'drizzle-orm/pg-core';
import {
  type BatchContext,
  BatchError,
  type BatchHandler,
  type BatchJob,
  cancel,
  createQueue,
  createWorker,
  type Database,
  type DbOrTx,
  defineJob,
  drain,
  fail,
  type Handler,
  handle,
  handleBatch,
  type RunningJob,
  runNext,
  snooze,
  type UntypedDatabase,
} from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { nodePostgres, postgresJs } from './databases.ts';

const send = defineJob('send', {
  payload: z.object({ orderId: z.string().transform(Number) }),
  output: z.object({ messageId: z.string() }),
});
const sync = defineJob('sync');
const maybe = defineJob('maybe', { output: z.string().optional() });
const queue = createQueue();
const ownQueue = createQueue({ tables: createQueueTables({ columns: { tenantId: text('tenant_id') } }) });

describe('what a batch handler gets', () => {
  test('the jobs, each with its payload as the schema made it, and its signal', () => {
    handleBatch(send, {}, async (jobs) => {
      expectTypeOf(jobs).toEqualTypeOf<readonly BatchJob<typeof send>[]>();
      for (const { payload, job, signal } of jobs) {
        expectTypeOf(payload).toEqualTypeOf<{ orderId: number }>();
        expectTypeOf(job).toEqualTypeOf<RunningJob>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      }
    });
    handleBatch(sync, { maxSize: 5, maxWaitMs: 5 }, ([first]) => {
      expectTypeOf(first?.payload).toEqualTypeOf<undefined>();
    });
  });

  test('one signal and one database for all', () => {
    handleBatch(send, {}, async (_, { signal, db }) => {
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(db).toEqualTypeOf<UntypedDatabase>();
      // @ts-expect-error the app's own type has to be named
      db.select();
    });
  });

  test("the app's own database, when its type is named", () => {
    const handler = handleBatch(send, {}, (_, { db }: BatchContext<typeof send, typeof postgresJs>) => {
      expectTypeOf(db).toEqualTypeOf(postgresJs);
    });
    expectTypeOf(handler).toEqualTypeOf<BatchHandler<typeof postgresJs, unknown, 'send'>>();
    createWorker(postgresJs, { queue, handlers: [handler, handle(sync, () => {})] });
    // @ts-expect-error another database
    createWorker(nodePostgres, { queue, handlers: [handler] });
  });

  test("the app's own columns, when its queue is named", () => {
    const handler = handleBatch(send, {}, (jobs: readonly BatchJob<typeof send, typeof ownQueue>[]) => {
      for (const { job } of jobs) expectTypeOf(job.tenantId).toEqualTypeOf<string | null>();
    });
    createWorker(postgresJs, { queue: ownQueue, handlers: [handler] });
    // @ts-expect-error the jobs of this queue have no such column
    createWorker(postgresJs, { queue, handlers: [handler] });
  });

  test('jobs of another definition do not fit', () => {
    // @ts-expect-error the jobs of sync have no payload
    handleBatch(sync, {}, async (jobs: readonly BatchJob<typeof send>[]) => void jobs);
  });
});

describe('what a batch handler returns', () => {
  test('nothing', () => {
    handleBatch(send, {}, async () => {});
    handleBatch(sync, {}, () => {});
  });

  test('an output or something else for each job', () => {
    handleBatch(send, {}, (jobs) => jobs.map(() => ({ messageId: 'm' })));
    handleBatch(send, {}, async (jobs) =>
      jobs.map(({ payload: { orderId } }) => {
        if (orderId === 1) return fail(new Error('one'));
        if (orderId === 2) return snooze(5);
        if (orderId === 3) return cancel('three');
        return { messageId: 'm' };
      }),
    );
    handleBatch(maybe, {}, (jobs) => jobs.map(() => undefined));
    handleBatch(sync, {}, (jobs) => jobs.map(() => 5));
  });

  test('a handler of single jobs may return a failure, too', () => {
    handle(send, () => fail('whatever'));
  });

  test('no other output, and no single one', () => {
    // @ts-expect-error a number
    handleBatch(send, {}, (jobs) => jobs.map(() => ({ messageId: 5 })));
    // @ts-expect-error not for each
    handleBatch(send, {}, () => ({ messageId: 'm' }));
    // @ts-expect-error what a driver says of an insert
    handleBatch(sync, {}, async () => ({ rowCount: 5 }));
    // @ts-expect-error a failure of all is thrown
    handleBatch(send, {}, () => fail(new Error('all')));
  });
});

test('complete takes a transaction and what would be returned', () => {
  handleBatch(send, {}, async (jobs, { complete, db }) => {
    await postgresJs.transaction(
      async (tx) =>
        await complete(
          tx,
          jobs.map(() => ({ messageId: 'm' })),
        ),
    );
    await nodePostgres.transaction(async (tx) => {
      await complete(tx, [{ messageId: 'm' }, fail(5), snooze(5), cancel('no')]);
      // @ts-expect-error no results
      await complete(tx);
      // @ts-expect-error a number
      await complete(tx, [{ messageId: 5 }]);
      // @ts-expect-error one for each
      await complete(tx, { messageId: 'm' });
    });
    // @ts-expect-error not a transaction
    await complete(db, []);
  });
  handleBatch(sync, {}, async (_, { complete, db }) => {
    await db.transaction(async (tx) => await complete(tx));
    await db.transaction(async (tx) => await complete(tx, [1, 'two']));
  });
  handleBatch(maybe, {}, async (_, { complete, db }) => {
    await db.transaction(async (tx) => await complete(tx));
  });
});

test('takes a definition, options and a function', () => {
  const handler = handleBatch(sync, {}, async () => {});
  expectTypeOf(handler).toEqualTypeOf<BatchHandler<Database, unknown, 'sync'>>();
  expectTypeOf(handler).toExtend<Handler>();
  // @ts-expect-error a kind
  handleBatch('sync', {}, async () => {});
  // @ts-expect-error no options
  handleBatch(sync, async () => {});
  // @ts-expect-error no function
  handleBatch(sync, {});
  // @ts-expect-error an option of another name
  handleBatch(sync, { size: 5 }, async () => {});
  // @ts-expect-error a text
  handleBatch(sync, { maxSize: '5' }, async () => {});
});

test('a BatchError names jobs by their ids', () => {
  expectTypeOf(new BatchError(new Map([[5, new Error('five')]])).failures).toEqualTypeOf<
    ReadonlyMap<number, unknown>
  >();
  // @ts-expect-error texts
  new BatchError(new Map([['5', new Error('five')]]));
});

test('goes where other handlers go', () => {
  const handlers: readonly Handler[] = [handle(send, () => {}), handleBatch(sync, {}, () => {})];
  createWorker(postgresJs, { queue, handlers });
  void drain(postgresJs, { queue, handlers, deadlineMs: 5 });
  void runNext(postgresJs, { queue, handlers });
  const either = handleBatch(send, {}, (_, { db }: BatchContext<typeof send, DbOrTx<typeof postgresJs>>) => {
    void db.select();
  });
  createWorker(postgresJs, { queue, handlers: [either] });
  void runNext(postgresJs, { queue, handlers: [either] });
});

test('around.runBatch gets all jobs', () => {
  createQueue({
    around: {
      runBatch: ({ jobs, signal, db }, next) => {
        expectTypeOf(jobs[0]?.payload).toEqualTypeOf<unknown>();
        expectTypeOf(jobs[0]?.job.id).toEqualTypeOf<number | undefined>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        expectTypeOf(db).toEqualTypeOf<Database>();
        return next();
      },
    },
  });
});
