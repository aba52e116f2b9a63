import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  drain,
  type Handler,
  type HandlerContext,
  handle,
  handleBatch,
  type JobDefinition,
  type JobInfo,
  type Queue,
  type Worker,
  type WorkerEvents,
} from 'drizzle-queue';
import type pg from 'pg';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  bun,
  mysql2,
  neonHttp,
  neonServerless,
  nodePostgres,
  pglite,
  postgresJs,
  sqliteProxy,
  vercelPostgres,
} from './databases.ts';

const queue = createQueue();
type OwnColumnsOf<TQueue> = TQueue extends Queue<infer TOwn> ? TOwn : never;
const send = defineJob('send', {
  payload: z.object({ to: z.string() }),
  output: z.object({ id: z.string() }),
});
const sync = defineJob('sync');
const handlers = [handle(send, async () => ({ id: 'm' })), handle(sync, async () => {})];

describe('createWorker', () => {
  test('takes the database of any driver', () => {
    expectTypeOf(createWorker(postgresJs, { queue, handlers })).toEqualTypeOf<Worker>();
    createWorker(nodePostgres, { queue, handlers });
    createWorker(pglite, { queue, handlers });
    createWorker(neonServerless, { queue, handlers });
    createWorker(vercelPostgres, { queue, handlers });
    createWorker(bun, { queue, handlers });
    // Its `db.transaction` throws, which is in its type all the same: claims and settlements need none.
    createWorker(neonHttp, { queue, handlers });
    createWorker({} as Database, { queue, handlers });
    // @ts-expect-error MySQL
    createWorker(mysql2, { queue, handlers });
    // @ts-expect-error SQLite
    createWorker(sqliteProxy, { queue, handlers });
    // @ts-expect-error a pool
    createWorker({} as pg.Pool, { queue, handlers });
  });

  test('takes handlers for its own database type, and none for another', () => {
    const own = handle(send, async ({ db }: HandlerContext<typeof send, typeof postgresJs>) => {
      await db.select();
    });
    createWorker(postgresJs, { queue, handlers: [own] });
    createWorker(postgresJs, { queue, handlers: [own, ...handlers] });
    // @ts-expect-error written for postgres.js
    createWorker(nodePostgres, { queue, handlers: [own] });
    // @ts-expect-error written for postgres.js, among others
    createWorker(nodePostgres, { queue, handlers: [...handlers, own] });
  });

  test('takes its options and no others', () => {
    createWorker(postgresJs, {
      queue,
      handlers,
      queues: { mail: { concurrency: 5, aging: { afterMs: 60_000 } }, default: { aging: undefined } },
      pollIntervalMs: 50,
      shutdownTimeoutMs: 1_000,
      retentionMs: Number.POSITIVE_INFINITY,
      silentMs: 20_000,
      name: 'w',
    });
    createWorker(postgresJs, {
      queue,
      handlers,
      queues: undefined,
      pollIntervalMs: undefined,
      name: undefined,
    });
    // @ts-expect-error no handlers
    createWorker(postgresJs, { queue });
    // @ts-expect-error no queue
    createWorker(postgresJs, { handlers });
    // @ts-expect-error no options
    createWorker(postgresJs);
    // @ts-expect-error unknown option
    createWorker(postgresJs, { queue, handlers, concurency: 5 });
    // @ts-expect-error how long, by name
    createWorker(postgresJs, { queue, handlers, queues: { mail: { aging: 60_000 } } });
    // @ts-expect-error unknown option of a queue
    createWorker(postgresJs, { queue, handlers, queues: { mail: { limit: 5 } } });
    // @ts-expect-error names without settings
    createWorker(postgresJs, { queue, handlers, queues: ['mail'] });
    // @ts-expect-error a number
    createWorker(postgresJs, { queue, handlers, pollIntervalMs: '1s' });
    // @ts-expect-error definitions are no handlers
    createWorker(postgresJs, { queue, handlers: [send] });
    // @ts-expect-error one handler is no list
    createWorker(postgresJs, { queue, handlers: handle(sync, async () => {}) });
  });
});

describe('the jobs of which none may be forgotten', () => {
  const index = defineJob('index', { payload: z.string() });
  const batch = handleBatch(index, {}, async () => {});

  test('each has a handler, of one job or of several', () => {
    const worker = createWorker(postgresJs, {
      queue,
      handlers: [...handlers, batch],
      jobs: [send, sync, index],
    });
    expectTypeOf(worker).toEqualTypeOf<Worker>();
    createWorker(postgresJs, { queue, handlers, jobs: [send] });
    createWorker(postgresJs, { queue, handlers, jobs: [] });
    createWorker(postgresJs, { queue, handlers, jobs: undefined });
    const allJobs = [send, sync] as const;
    createWorker(postgresJs, { queue, handlers, jobs: allJobs, queues: { mail: {} } });
    drain(postgresJs, { queue, handlers, jobs: allJobs, deadlineMs: 5 });
  });

  test('a kind without one does not compile, and is named', () => {
    // @ts-expect-error no handler for index
    createWorker(postgresJs, { queue, handlers, jobs: [send, sync, index] });
    // @ts-expect-error no handler for send
    createWorker(postgresJs, { queue, handlers: [handle(sync, async () => {})], jobs: [send, sync] });
    // @ts-expect-error no handler for sync
    createWorker(postgresJs, { queue, handlers: [batch], jobs: [index, sync] });
    // @ts-expect-error no handler for index
    drain(postgresJs, { queue, handlers, jobs: [index], deadlineMs: 5 });
    type Options = Parameters<
      typeof createWorker<typeof postgresJs, OwnColumnsOf<typeof queue>, 'sync', 'sync' | 'index'>
    >[1];
    expectTypeOf<
      "There is no handler for 'index', which is among the jobs" extends keyof Options['handlers']
        ? true
        : false
    >().toEqualTypeOf<true>();
  });

  test('what is known only at run time is checked there', () => {
    createWorker(postgresJs, { queue, handlers: handlers as Handler[], jobs: [index] });
    createWorker(postgresJs, { queue, handlers, jobs: [send, index] as JobDefinition[] });
    const start = <TKind extends string>(kind: TKind) => {
      const job = defineJob(kind);
      return createWorker(postgresJs, { queue, handlers: [handle(job, async () => {})] });
    };
    expectTypeOf(start('any')).toEqualTypeOf<Worker>();
  });

  test('are definitions', () => {
    // @ts-expect-error kinds
    createWorker(postgresJs, { queue, handlers, jobs: ['send'] });
    // @ts-expect-error one definition is no list
    createWorker(postgresJs, { queue, handlers, jobs: send });
  });
});

describe('a worker', () => {
  const worker = createWorker(postgresJs, { queue, handlers });

  test('starts, runs and stops', () => {
    expectTypeOf(worker.start()).toEqualTypeOf<Promise<void>>();
    expectTypeOf(worker.run()).toEqualTypeOf<Promise<void>>();
    expectTypeOf(worker.stop()).toEqualTypeOf<Promise<void>>();
  });

  test('says these events, each with one argument', () => {
    expectTypeOf<keyof WorkerEvents>().toEqualTypeOf<
      | 'started'
      | 'claimed'
      | 'began'
      | 'completed'
      | 'failed'
      | 'discarded'
      | 'snoozed'
      | 'waiting'
      | 'cancelled'
      | 'interrupted'
      | 'lost'
      | 'fired'
      | 'gone'
      | 'listening'
      | 'polling'
      | 'paused'
      | 'resumed'
      | 'idle'
      | 'error'
      | 'stopping'
      | 'stopped'
    >();
    worker
      .on('started', (event) => {
        expectTypeOf(event.workerId).toEqualTypeOf<number>();
        expectTypeOf(event.concurrency).toEqualTypeOf<Readonly<Record<string, number>>>();
      })
      .on('claimed', (event) => {
        expectTypeOf(event.queue).toEqualTypeOf<string>();
        expectTypeOf(event.count).toEqualTypeOf<number>();
      })
      .on('completed', (event) => {
        expectTypeOf(event.job).toExtend<JobInfo>();
        expectTypeOf(event.durationMs).toEqualTypeOf<number>();
      })
      .on('failed', (event) => {
        expectTypeOf(event.error).toEqualTypeOf<unknown>();
        expectTypeOf(event.retryInMs).toEqualTypeOf<number | undefined>();
        expectTypeOf(event.durationMs).toEqualTypeOf<number>();
      })
      .on('discarded', (event) => expectTypeOf(event.error).toEqualTypeOf<unknown>())
      .on('snoozed', (event) => expectTypeOf(event.delayMs).toEqualTypeOf<number>())
      .on('cancelled', (event) => expectTypeOf(event.reason).toEqualTypeOf<string>())
      .on('interrupted', (event) => expectTypeOf(event.job.id).toEqualTypeOf<number>())
      .on('lost', (event) => expectTypeOf(event.job.kind).toEqualTypeOf<string>())
      .on('paused', (event) => expectTypeOf(event.queue).toEqualTypeOf<string>())
      .on('resumed', (event) => expectTypeOf(event.queue).toEqualTypeOf<string>())
      .on('gone', (event) => {
        expectTypeOf(event.workerId).toEqualTypeOf<number>();
        expectTypeOf(event.name).toEqualTypeOf<string>();
      })
      .on('idle', (event) => expectTypeOf(event.queue).toEqualTypeOf<string>())
      .on('error', (event) => expectTypeOf(event.during).toEqualTypeOf<string>())
      .on('stopping', (event) => expectTypeOf(event.running).toEqualTypeOf<number>())
      .on('stopped', (...none) => expectTypeOf(none).toEqualTypeOf<[]>());
  });

  test('has no other events or arguments', () => {
    // @ts-expect-error unknown event
    worker.on('succeeded', () => {});
    // @ts-expect-error a completed job has no error
    worker.on('completed', ({ error }) => error);
    // @ts-expect-error one argument
    worker.on('failed', (_event, error) => error);
    // @ts-expect-error unknown event
    worker.off('succeeded', () => {});
    const listener = ({ job }: WorkerEvents['completed'][0]) => job.id;
    worker.on('completed', listener).off('completed', listener);
  });
});
