import { integer, pgTable } from 'drizzle-orm/pg-core';
import {
  cancel,
  createQueue,
  createWorker,
  type Database,
  type DbOrTx,
  defineJob,
  type Handler,
  type HandlerContext,
  handle,
  handlersFor,
  type JobDefinition,
  type JobHandler,
  type JobInfo,
  type RunningJob,
  runNext,
  snooze,
  type UntypedDatabase,
} from 'drizzle-queue';
import { drainIn } from 'drizzle-queue/testing';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { bun, neonServerless, nodePostgres, pglite, postgresJs, vercelPostgres } from './databases.ts';

const orders = pgTable('orders', { id: integer('id').primaryKey() });
const send = defineJob('send', {
  payload: z.object({ orderId: z.string().transform(Number) }),
  output: z.object({ messageId: z.string() }),
});
const sync = defineJob('sync');
const queue = createQueue();
const maybe = defineJob('maybe', { output: z.string().optional() });

describe('what a handler gets', () => {
  test("the payload is the schema's output", () => {
    handle(send, async ({ payload }) => {
      expectTypeOf(payload).toEqualTypeOf<{ orderId: number }>();
    });
    handle(sync, async ({ payload }) => {
      expectTypeOf(payload).toEqualTypeOf<undefined>();
    });
    handle(send as JobDefinition, async ({ payload }) => {
      expectTypeOf(payload).toEqualTypeOf<unknown>();
    });
  });

  test('the job without its stored payload, the signal, a database', () => {
    handle(send, async ({ job, signal, db }) => {
      expectTypeOf(job).toEqualTypeOf<RunningJob>();
      expectTypeOf(job).toExtend<JobInfo>();
      expectTypeOf(job.attempt).toEqualTypeOf<number>();
      expectTypeOf(job.progress).toEqualTypeOf<(value: unknown) => void>();
      // @ts-expect-error as stored: the payload is beside it
      job.payload;
      // @ts-expect-error such a job is not run
      job.cancelReason;
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(db).toEqualTypeOf<UntypedDatabase>();
      // @ts-expect-error the app's own type has to be named
      db.select();
    });
  });

  test("the app's own database, when its type is named", () => {
    const handler = handle(send, async ({ db, payload }: HandlerContext<typeof send, typeof postgresJs>) => {
      expectTypeOf(db).toEqualTypeOf(postgresJs);
      expectTypeOf(payload).toEqualTypeOf<{ orderId: number }>();
      await db.select().from(orders);
      return { messageId: 'm' };
    });
    expectTypeOf(handler).toEqualTypeOf<JobHandler<typeof postgresJs, unknown, 'send'>>();
  });

  test('a context of another definition does not fit', () => {
    // @ts-expect-error the context of sync has no payload
    handle(sync, async ({ payload }: HandlerContext<typeof send>) => void payload);
  });
});

describe('what a handler returns', () => {
  test('its output, now or later', () => {
    handle(send, async () => ({ messageId: 'm' }));
    handle(send, () => ({ messageId: 'm' }));
    handle(maybe, async () => 'text');
    handle(maybe, async () => undefined);
  });

  test('a snooze or a cancel', () => {
    handle(send, async ({ payload }) => (payload.orderId > 5 ? snooze(5_000) : cancel('too small')));
    handle(send, () => snooze(5));
    handle(send, async ({ payload }) => {
      if (payload.orderId > 5) return snooze(5);
      return { messageId: 'm' };
    });
  });

  test('nothing: it has called complete, or has nothing to say', () => {
    handle(send, async () => {});
    handle(send, () => {});
    handle(sync, async () => {});
    handle(send, async ({ payload }) => {
      if (payload.orderId > 5) return;
      return { messageId: 'm' };
    });
  });

  test('anything where there is no schema', () => {
    handle(sync, async () => ({ any: ['thing'] }));
  });

  test('no other output', () => {
    // @ts-expect-error a number
    handle(send, async () => ({ messageId: 5 }));
    // @ts-expect-error a text
    handle(send, async () => 'm');
    // @ts-expect-error no messageId
    handle(send, async () => ({}));
    // @ts-expect-error wrong on one way
    handle(send, async ({ payload }) => (payload.orderId > 5 ? { messageId: 'm' } : null));
    // @ts-expect-error looks like a snooze
    handle(send, async () => ({ delayMs: 5 }));
    // @ts-expect-error a number
    handle(maybe, async () => 5);
  });
});

describe('complete', () => {
  test('takes the transaction of any driver, and a transaction inside it', () => {
    handle(send, async ({ complete, db }) => {
      await postgresJs.transaction(async (tx) => await complete(tx, { messageId: 'm' }));
      await nodePostgres.transaction(async (tx) => {
        await tx.transaction(async (inner) => await complete(inner, { messageId: 'm' }));
      });
      await pglite.transaction(async (tx) => await complete(tx, { messageId: 'm' }));
      await neonServerless.transaction(async (tx) => await complete(tx, { messageId: 'm' }));
      await vercelPostgres.transaction(async (tx) => await complete(tx, { messageId: 'm' }));
      await bun.transaction(async (tx) => await complete(tx, { messageId: 'm' }));
      await db.transaction(async (tx) => {
        expectTypeOf(complete(tx, { messageId: 'm' })).toEqualTypeOf<Promise<void>>();
      });
    });
  });

  test('takes no database', () => {
    handle(send, async ({ complete, db }) => {
      // @ts-expect-error not a transaction
      await complete(postgresJs, { messageId: 'm' });
      // @ts-expect-error not a transaction
      await complete(pglite, { messageId: 'm' });
      // @ts-expect-error not a transaction
      await complete(bun, { messageId: 'm' });
      // @ts-expect-error not a transaction
      await complete(db, { messageId: 'm' });
      // @ts-expect-error not a transaction
      await complete({ messageId: 'm' });
    });
  });

  test('takes the output that the definition says', () => {
    handle(send, async ({ complete, db }) => {
      await db.transaction(async (tx) => {
        // @ts-expect-error no output
        await complete(tx);
        // @ts-expect-error a number
        await complete(tx, { messageId: 5 });
        // @ts-expect-error unknown property
        await complete(tx, { messageId: 'm', more: 1 });
        // @ts-expect-error that is returned
        await complete(tx, snooze(5));
      });
    });
    handle(maybe, async ({ complete, db }) => {
      await db.transaction(async (tx) => await complete(tx));
      await db.transaction(async (tx) => await complete(tx, 'text'));
      // @ts-expect-error a number
      await db.transaction(async (tx) => await complete(tx, 5));
    });
    handle(sync, async ({ complete, db }) => {
      await db.transaction(async (tx) => await complete(tx));
      await db.transaction(async (tx) => await complete(tx, { any: 'thing' }));
    });
  });
});

describe('handle', () => {
  test('takes a definition and a function', () => {
    expectTypeOf(handle(sync, async () => {})).toEqualTypeOf<JobHandler<Database, unknown, 'sync'>>();
    expectTypeOf(handle(sync, async () => {})).toExtend<Handler>();
    // @ts-expect-error a kind
    handle('sync', async () => {});
    // @ts-expect-error no function
    handle(sync);
    // @ts-expect-error a promise
    handle(sync, Promise.resolve());
  });

  test('a handler for any database is one for every database, and not the other way round', () => {
    expectTypeOf<Handler>().toExtend<Handler<typeof postgresJs>>();
    expectTypeOf<Handler<typeof postgresJs>>().not.toExtend<Handler>();
    expectTypeOf<Handler<typeof postgresJs>>().not.toExtend<Handler<typeof nodePostgres>>();
  });
});

describe('handlers of one database', () => {
  const own = handlersFor<typeof postgresJs>();

  test("db is the app's own, in a worker and in a transaction", () => {
    const handlers = [
      own.handle(sync, async ({ db, complete }) => {
        expectTypeOf(db).toEqualTypeOf<DbOrTx<typeof postgresJs>>();
        await db.select().from(orders);
        await db.transaction(async (tx) => {
          await tx.insert(orders).values({ id: 1 });
          await complete(tx);
        });
      }),
      own.handleBatch(maybe, {}, async (_, { db }) => void (await db.select().from(orders))),
    ];
    createWorker(postgresJs, { queue, handlers, jobs: [sync, maybe] });
    runNext(postgresJs, { queue, handlers });
    void postgresJs.transaction(async (tx) => void (await drainIn(tx, { queue, handlers })));
    // @ts-expect-error handlers of another driver
    createWorker(nodePostgres, { queue, handlers });
  });

  test('the output is checked, and own columns are known', () => {
    // @ts-expect-error no message id
    own.handle(send, async () => ({ messageId: 1 }));
    const queued = handlersFor<typeof postgresJs, typeof queue>();
    queued.handle(sync, async ({ job }) => expectTypeOf(job.id).toEqualTypeOf<number>());
  });
});
