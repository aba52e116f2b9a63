import {
  createQueue,
  createWorker,
  type DbOrTx,
  type DrainResult,
  defineJob,
  drain,
  type HandlerContext,
  handle,
  type RanJob,
  runNext,
  type TransactionOf,
} from 'drizzle-queue';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { mysql2, nodePostgres, postgresJs } from './databases.ts';

const queue = createQueue();
const send = defineJob('send', { payload: z.object({ to: z.string() }) });
const handlers = [handle(send, async () => {})];

/** As `drizzle(client)` returns it: a transaction has no client. */
declare const withClient: typeof postgresJs & { $client: { end(): Promise<void> } };

describe('runNext', () => {
  test('hands its handlers the transaction', () => {
    const inTransaction = handle(
      send,
      async ({ db: tx }: HandlerContext<typeof send, TransactionOf<typeof withClient>>) => {
        await tx.select();
        tx.rollback();
      },
    );
    runNext(withClient, { queue, handlers: [inTransaction] });
    runNext(withClient, { queue, handlers: [inTransaction, ...handlers] });
    // @ts-expect-error another driver's transaction
    runNext(nodePostgres, { queue, handlers: [inTransaction] });
  });

  test('hands them no more than that', () => {
    const withDatabase = handle(send, async ({ db }: HandlerContext<typeof send, typeof withClient>) => {
      await db.$client.end();
    });
    // @ts-expect-error they get a transaction
    runNext(withClient, { queue, handlers: [withDatabase] });
  });

  test('complete takes that transaction', () => {
    handle(send, async ({ db, complete }: HandlerContext<typeof send, TransactionOf<typeof withClient>>) => {
      await complete(db);
      await db.transaction(async (inner) => await complete(inner));
    });
  });

  test('answers the job that it ran, or none', async () => {
    expectTypeOf(runNext(postgresJs, { queue, handlers })).resolves.toEqualTypeOf<RanJob | undefined>();
    expectTypeOf<RanJob['outcome']>().toEqualTypeOf<
      'completed' | 'failed' | 'snoozed' | 'waiting' | 'cancelled'
    >();
  });

  test('takes its options and no others', () => {
    runNext(postgresJs, { queue, handlers, queues: ['mail', 'default'] });
    runNext(postgresJs, { queue, handlers, queues: undefined });
    // @ts-expect-error names, as there is nothing to set
    runNext(postgresJs, { queue, handlers, queues: { mail: {} } });
    // @ts-expect-error unknown option
    runNext(postgresJs, { queue, handlers, limit: 5 });
    // @ts-expect-error no handlers
    runNext(postgresJs, { queue });
    // @ts-expect-error MySQL
    runNext(mysql2, { queue, handlers });
  });
});

describe('drain', () => {
  test('needs a deadline', () => {
    expectTypeOf(
      drain(postgresJs, { queue, handlers, deadlineMs: 5_000 }),
    ).resolves.toEqualTypeOf<DrainResult>();
    // @ts-expect-error no deadlineMs
    drain(postgresJs, { queue, handlers });
    // @ts-expect-error a number
    drain(postgresJs, { queue, handlers, deadlineMs: undefined });
  });

  test('takes the options of a worker, but for the shutdown', () => {
    drain(postgresJs, {
      queue,
      handlers,
      deadlineMs: 5,
      queues: { mail: { concurrency: 5, aging: { afterMs: 60_000 } } },
      name: 'd',
    });
    // @ts-expect-error the deadline says when
    drain(postgresJs, { queue, handlers, deadlineMs: 5, shutdownTimeoutMs: 5 });
    // @ts-expect-error unknown option
    drain(postgresJs, { queue, handlers, deadlineMs: 5, timeoutMs: 5 });
    // @ts-expect-error MySQL
    drain(mysql2, { queue, handlers, deadlineMs: 5 });
  });

  test('takes handlers for its own database type, and none for another', () => {
    const own = handle(send, async ({ db }: HandlerContext<typeof send, typeof postgresJs>) => {
      await db.select();
    });
    drain(postgresJs, { queue, handlers: [own], deadlineMs: 5 });
    // @ts-expect-error written for postgres.js
    drain(nodePostgres, { queue, handlers: [own], deadlineMs: 5 });
  });

  test('says what it has done', () => {
    expectTypeOf<keyof DrainResult>().toEqualTypeOf<
      'completed' | 'failed' | 'discarded' | 'snoozed' | 'cancelled' | 'interrupted' | 'empty'
    >();
  });
});

describe('DbOrTx', () => {
  test('types a handler for workers and runNext alike', () => {
    type Db = DbOrTx<typeof withClient>;
    const handler = handle(send, async ({ db }: HandlerContext<typeof send, Db>) => {
      expectTypeOf(db.select).toBeFunction();
      await db.transaction(async (tx) => tx.select());
    });
    createWorker(withClient, { queue, handlers: [handler] });
    void runNext(withClient, { queue, handlers: [handler] });
  });
});
