import { sql } from 'drizzle-orm';
import { integer, jsonb, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import {
  type BatchEnqueueResult,
  type CancelFilter,
  createQueue,
  createWorker,
  type Database,
  defineJob,
  drain,
  type EnqueueOptions,
  type FlowJobOptions,
  type HandlerContext,
  handle,
  handlersFor,
  type JobRecord,
  type LimitedEnqueueOptions,
  type ListFilter,
  type PlainEnqueueOptions,
  type Queue,
  type RedriveFilter,
  type RunningJob,
  runNext,
  type WaitOptions,
  workflowsIn,
} from 'drizzle-queue';
import { createQueueTables, queuePauses, queueWorkers } from 'drizzle-queue/schema';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { TakenKey } from '../../src/core/schema/check-own-columns.ts';
import type { ClaimedJob } from '../../src/core/sql/claimed-job.ts';
import { postgresJs as db } from './databases.ts';

const { queueJobs, queueResults } = createQueueTables({
  prefix: 'mail_',
  columns: {
    tenantId: text('tenant_id').notNull(),
    shard: integer('shard').notNull().default(0),
    endsAt: timestamp('ends_at'),
    tags: jsonb('tags').$type<string[]>(),
  },
});
const { queueWorkers: mailWorkers, queuePauses: mailPauses } = createQueueTables({ prefix: 'mail_' });
const tables = { queueJobs, queueResults, queueWorkers: mailWorkers, queuePauses: mailPauses };
const queue = createQueue({ tables });
const optional = createQueue({ tables: createQueueTables({ columns: { shard: integer('shard') } }) });
const send = defineJob('send', { payload: z.object({ to: z.string() }) });
const sync = defineJob('sync');
const users = pgTable('users', { id: integer('id').primaryKey(), name: text('name').notNull() });

interface Own {
  readonly tenantId: string;
  readonly shard: number;
  readonly endsAt: Date | null;
  readonly tags: string[] | null;
}

describe('the tables', () => {
  test('have the own columns', () => {
    expectTypeOf<(typeof queueJobs.$inferSelect)['tenantId']>().toEqualTypeOf<string>();
    expectTypeOf<(typeof queueResults.$inferSelect)['tags']>().toEqualTypeOf<string[] | null>();
    expectTypeOf(queueJobs._.name).toEqualTypeOf<'mail_jobs'>();
    expectTypeOf(
      db.select({ t: queueJobs.tenantId, e: queueJobs.endsAt }).from(queueJobs),
    ).resolves.toEqualTypeOf<{ t: string; e: Date | null }[]>();
  });

  test('take no names of the library, and only columns', () => {
    // @ts-expect-error a column of the jobs
    createQueueTables({ columns: { payload: text('payload') } });
    // @ts-expect-error a column of the results
    createQueueTables({ columns: { state: text('state') } });
    // @ts-expect-error an option of an enqueue
    createQueueTables({ columns: { delayMs: integer('delay_ms') } });
    // @ts-expect-error an option of run
    createQueueTables({ columns: { timeoutMs: integer('timeout_ms') } });
    // @ts-expect-error an option in a flow
    createQueueTables({ columns: { after: text('after') } });
    // @ts-expect-error a field of a claimed job
    createQueueTables({ columns: { beginTime: text('begin_time') } });
    // @ts-expect-error no column
    createQueueTables({ columns: { tenantId: 'text' } });
  });

  test('take no field that stands beside the own columns', () => {
    type KeysOf<T> = T extends unknown ? keyof T : never;
    type Job = ClaimedJob | RunningJob | JobRecord;
    type Options =
      | EnqueueOptions
      | LimitedEnqueueOptions
      | PlainEnqueueOptions
      | WaitOptions
      | FlowJobOptions;
    type Filter = ListFilter | CancelFilter | RedriveFilter;
    expectTypeOf<Exclude<KeysOf<Job | Options | Filter>, TakenKey>>().toEqualTypeOf<never>();
  });

  test('without own columns, and with an empty list of them, make a plain queue', () => {
    expectTypeOf(createQueue({ tables: createQueueTables() })).toEqualTypeOf(createQueue());
    expectTypeOf(createQueue({ tables: createQueueTables({ columns: {} }) })).toEqualTypeOf(createQueue());
  });
});

describe('an enqueue', () => {
  test('takes them as an insert would', () => {
    queue.enqueue(db, send, { to: 'ada' }, { tenantId: 'a' });
    queue.enqueue(
      db,
      send,
      { to: 'ada' },
      { tenantId: 'a', shard: 1, endsAt: new Date(), tags: null, delayMs: 5 },
    );
    queue.enqueue(db, sync, undefined, { tenantId: 'a' });
    // @ts-expect-error no options
    queue.enqueue(db, send, { to: 'ada' });
    // @ts-expect-error no options
    queue.enqueue(db, sync);
    // @ts-expect-error no tenantId
    queue.enqueue(db, send, { to: 'ada' }, { shard: 1 });
    // @ts-expect-error NOT NULL
    queue.enqueue(db, send, { to: 'ada' }, { tenantId: null });
    // @ts-expect-error a number
    queue.enqueue(db, send, { to: 'ada' }, { tenantId: 'a', shard: '1' });
    // @ts-expect-error unknown option
    queue.enqueue(db, send, { to: 'ada' }, { tenantId: 'a', tenant: 'a' });
    // @ts-expect-error wrong payload
    queue.enqueue(db, send, { to: 5 }, { tenantId: 'a' });
  });

  test('needs no options where all of them may be left out', () => {
    optional.enqueue(db, sync);
    optional.enqueue(db, sync, undefined, { shard: 1 });
    // @ts-expect-error a number
    optional.enqueue(db, sync, undefined, { shard: 'a' });
    // @ts-expect-error of other tables
    optional.enqueue(db, sync, undefined, { tenantId: 'a' });
  });

  test('of a plain queue takes none', () => {
    // @ts-expect-error no such column
    createQueue().enqueue(db, sync, undefined, { tenantId: 'a' });
  });

  test('as a query takes them, too', () => {
    expectTypeOf(
      queue.enqueueQuery(db, send, { to: 'ada' }, { tenantId: 'a', endsAt: null, tags: ['x'] }),
    ).resolves.toEqualTypeOf<[BatchEnqueueResult]>();
    optional.enqueueQuery(db, sync);
    // @ts-expect-error no tenantId
    queue.enqueueQuery(db, send, { to: 'ada' });
    // @ts-expect-error NOT NULL
    queue.enqueueQuery(db, send, { to: 'ada' }, { tenantId: null });
    // @ts-expect-error a number
    queue.enqueueQuery(db, send, { to: 'ada' }, { tenantId: 'a', shard: '1' });
    // @ts-expect-error no such column
    createQueue().enqueueQuery(db, sync, undefined, { tenantId: 'a' });
  });

  test('in bulk', () => {
    queue.enqueueMany(db, send, [{ payload: { to: 'ada' }, tenantId: 'a' }]);
    queue.enqueueMany(db, sync, [{ tenantId: 'a', priority: 1 }]);
    // @ts-expect-error no tenantId
    queue.enqueueMany(db, send, [{ payload: { to: 'ada' } }]);
    // @ts-expect-error no tenantId
    queue.enqueueMany(db, sync, [{}]);
  });

  test('from a select: a value, or an expression over its row', () => {
    const select = db.select({ to: users.name }).from(users);
    queue.enqueueFrom(db, send, select, { tenantId: 'a' });
    queue.enqueueFrom(db, send, select, { tenantId: (row) => sql`${row.to}`, shard: () => sql`1` });
    // @ts-expect-error no tenantId
    queue.enqueueFrom(db, send, select);
    // @ts-expect-error no tenantId
    queue.enqueueFrom(db, send, select, {});
    // @ts-expect-error a text
    queue.enqueueFrom(db, send, select, { tenantId: 5 });
    // @ts-expect-error not selected
    queue.enqueueFrom(db, send, select, { tenantId: (row) => sql`${row.id}` });
    optional.enqueueFrom(db, send, select);
  });
});

describe('a record', () => {
  test('has them in every state', async () => {
    const record = await queue.find(db, send, 1);
    if (record === undefined) return;
    expectTypeOf(record.tenantId).toEqualTypeOf<string>();
    expectTypeOf(record.endsAt).toEqualTypeOf<Date | null>();
    expectTypeOf(record.payload).toEqualTypeOf<{ to: string }>();
    if (record.state === 'completed') expectTypeOf(record.output).toEqualTypeOf<unknown>();
    // @ts-expect-error it may not be completed
    record.output;
    // @ts-expect-error read-only
    record.tenantId = 'b';
    expectTypeOf((await queue.find(db, 1))?.tags).toEqualTypeOf<string[] | null | undefined>();
  });

  test('of a list, which they filter', async () => {
    const { jobs } = await queue.list(db, { job: send, tenantId: 'a', endsAt: null });
    expectTypeOf(jobs[0]?.tenantId).toEqualTypeOf<string | undefined>();
    expectTypeOf(jobs[0]?.payload).toEqualTypeOf<{ to: string } | undefined>();
    queue.list(db);
    queue.list(db, { tenantId: undefined });
    // @ts-expect-error a text
    queue.list(db, { tenantId: 5 });
    // @ts-expect-error no such column
    queue.list(db, { tenant: 'a' });
    // @ts-expect-error no such column
    createQueue().list(db, { tenantId: 'a' });
  });
});

test('those that are cancelled or put back, they filter', () => {
  queue.cancelMany(db, { tenantId: 'a', endsAt: null });
  queue.redrive(db, { tenantId: 'a', state: 'cancelled' });
  queue.redrive(db, 1);
  // @ts-expect-error a text
  queue.cancelMany(db, { tenantId: 5 });
  // @ts-expect-error a text
  queue.redrive(db, { tenantId: 5 });
  // @ts-expect-error no such column
  queue.cancelMany(db, { tenant: 'a' });
  // @ts-expect-error no such column
  createQueue().redrive(db, { tenantId: 'a' });
});

describe('a handler', () => {
  const typed = handle(
    send,
    async ({ job, payload }: HandlerContext<typeof send, Database, typeof queue>) => {
      expectTypeOf(job.tenantId).toEqualTypeOf<string>();
      expectTypeOf(job.shard).toEqualTypeOf<number>();
      expectTypeOf(job).toExtend<Own>();
      expectTypeOf(payload).toEqualTypeOf<{ to: string }>();
    },
  );

  test('has them in its job when the queue is named', () => {
    handle(send, async ({ job }) => {
      // @ts-expect-error the queue has to be named
      job.tenantId;
    });
  });

  test('runs where the tables have these columns, and nowhere else', () => {
    createWorker(db, { queue, handlers: [typed] });
    createWorker(db, { queue, handlers: [typed, handle(sync, async () => {})] });
    void drain(db, { queue, handlers: [typed], deadlineMs: 5 });
    void runNext(db, { queue, handlers: [typed] });
    // @ts-expect-error a plain queue
    createWorker(db, { queue: createQueue(), handlers: [typed] });
    // @ts-expect-error other columns
    createWorker(db, { queue: optional, handlers: [typed] });
    // @ts-expect-error a plain queue
    void drain(db, { queue: createQueue(), handlers: [typed], deadlineMs: 5 });
    // @ts-expect-error a plain queue
    void runNext(db, { queue: createQueue(), handlers: [typed] });
  });
});

test('a queue with own columns is a queue', () => {
  expectTypeOf(queue).toExtend<Queue>();
  createQueue({ tables: { queueJobs, queueResults, queueWorkers, queuePauses } });
});

describe('workflows', () => {
  const durable = createQueue({ tables, workflows: workflowsIn(workflowTables) });
  const plain = createQueue({ workflows: workflowsIn(workflowTables) });

  test('take them for children', () => {
    const { handle } = handlersFor<typeof db, typeof durable>();
    handle(sync, async ({ step, job }) => {
      const { tenantId } = job;
      await step.waitForJob(await step.enqueue('one', send, { to: 'ada' }, { tenantId, detached: true }));
      await step.enqueueMany('many', send, [{ payload: { to: 'ada' }, tenantId, shard: 1 }]);
      await step.addToFlow('more', sync, [{ tenantId }]);
      // @ts-expect-error tenantId is required
      await step.enqueue('two', send, { to: 'ada' });
      // @ts-expect-error tenantId is required
      await step.enqueueMany('others', send, [{ payload: { to: 'ada' } }]);
      // @ts-expect-error it is a text
      await step.addToFlow('numbers', sync, [{ tenantId: 1 }]);
    });
  });

  test('take them for flows and batches', () => {
    durable.workflows.enqueueFlow(db, (flow) => {
      const first = flow.add(sync, undefined, { tenantId: 'a' });
      flow.add(send, { to: 'ada' }, { tenantId: 'a', after: [first], onFailure: 'run' });
      // @ts-expect-error tenantId is required
      flow.add(sync);
      // @ts-expect-error tenantId is required
      flow.add(send, { to: 'ada' }, { after: [first] });
    });
    const last = { last: sync, tenantId: 'a' };
    durable.workflows.enqueueBatch(db, send, [{ payload: { to: 'ada' }, tenantId: 'a' }], last);
    // @ts-expect-error tenantId is required
    durable.workflows.enqueueBatch(db, send, [{ payload: { to: 'ada' } }], last);
    // @ts-expect-error tenantId is required, of the last one, too
    durable.workflows.enqueueBatch(db, send, [{ payload: { to: 'ada' }, tenantId: 'a' }], { last: sync });
  });

  test('take none where there are none', () => {
    plain.workflows.enqueueFlow(db, (flow) => {
      flow.add(sync);
      // @ts-expect-error no such column
      flow.add(sync, undefined, { tenantId: 'a' });
    });
    plain.workflows.enqueueBatch(db, sync, [{}], { last: sync });
  });
});
