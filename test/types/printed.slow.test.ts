import type { Limits, NoLimits, NoSchedules, NoWorkflows, Schedules, Workflows } from 'drizzle-queue';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { compile } from './compile.ts';

const app = `
import { createQueue, createWorker, defineJob, handle, limitsIn, schedulesIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { z } from 'zod';
import { postgresJs as db } from './databases.ts';
export const queue = createQueue();
export const controlled = createQueue({
  limits: limitsIn(control, { mail: { concurrency: 50 } }),
  schedules: schedulesIn(control.queueSchedules),
  requireTransaction: true,
});
export const sendReceipt = defineJob('send-receipt', { payload: z.object({ orderId: z.number() }) });
export const handler = handle(sendReceipt, async ({ payload }) => void payload.orderId);
export const worker = createWorker(db, { queue, handlers: [handler] });
export const enqueued = queue.enqueue(db, sendReceipt, { orderId: 1 });
export const found = queue.find(db, sendReceipt, 1);
export const listed = queue.list(db, { job: sendReceipt });
export const ended = queue.waitFor(db, sendReceipt, 1);
export const stats = queue.stats(db);
`;

test('what an editor shows of the names that are used most is a line each', { timeout: 120_000 }, () => {
  const { mistakes, printed } = compile(app);
  expect(mistakes).toEqual([]);
  const record = '"send-receipt", { orderId: number; }, unknown';
  expect(printed('queue')).toBe('Queue<OwnColumns, NoSchedules, NoLimits, Executor, NoWorkflows>');
  expect(printed('controlled')).toBe(
    'Queue<OwnColumns, Schedules<OwnColumns>, Limits, Transaction, NoWorkflows>',
  );
  expect(printed('sendReceipt')).toMatch(
    /^JobDefinition<"send-receipt", ZodObject<\{ orderId: ZodNumber; \}, [^{}]*>, undefined>$/,
  );
  expect(printed('handler')).toBe('JobHandler<Database, unknown, "send-receipt">');
  expect(printed('worker')).toBe('Worker');
  expect(printed('enqueued')).toBe('Promise<EnqueueResult>');
  expect(printed('found')).toBe(`Promise<JobRecord<${record}> | undefined>`);
  expect(printed('listed')).toBe(`Promise<JobList<JobRecord<${record}>>>`);
  expect(printed('ended')).toBe(`Promise<FinalRecord<${record}>>`);
  expect(printed('stats')).toBe('Promise<QueueStats>');
});

describe('what the compiler says of a mistake names what to write', () => {
  const { mistakes } = compile(`
    import { drizzle } from 'drizzle-orm/postgres-js';
    import { createQueue, createWorker, defineJob, handle, handleBatch } from 'drizzle-queue';
    const queue = createQueue();
    const send = defineJob('send');
    const index = defineJob('index');
    const handlers = [handle(send, async () => {})];
    createWorker(drizzle.mock(), { queue, handlers: [handle(send, async () => {})], jobs: [send, index] });
    createWorker(drizzle.mock(), { queue, handlers, jobs: [send, index] });
    handle(send, async ({ db }) => void db.select());
    handleBatch(send, {}, async (_, { db }) => void db.query.orders);
    queue.schedules.pause(drizzle.mock(), 'nightly');
    queue.limits.list(drizzle.mock());
    queue.workflows.steps(drizzle.mock(), 1);
  `);

  test('a kind without a handler, inline and not', () => {
    const missing = "Property '\"There is no handler for 'index', which is among the jobs\"' is missing";
    expect(mistakes.filter((mistake) => mistake.includes(missing))).toHaveLength(2);
  });

  test('a database without its type', () => {
    expect(mistakes.filter((mistake) => mistake.includes('use handlersFor<typeof db>()'))).toHaveLength(2);
    expect(mistakes).toHaveLength(7);
  });

  test('a feature that the queue was made without, of which all methods are named', () => {
    type Methods<T> = { [K in keyof T]: T[K] extends (...given: never) => unknown ? K : never }[keyof T];
    type OfWorkers = 'checkServer' | 'forWorker';
    expectTypeOf<Exclude<Methods<Schedules>, keyof NoSchedules>>().toEqualTypeOf<'toStore' | 'listFrom'>();
    expectTypeOf<Exclude<Methods<Limits>, keyof NoLimits>>().toEqualTypeOf<
      OfWorkers | 'has' | 'check' | 'checkServed' | 'checkRunNext' | 'tablesFor' | 'isGrouped'
    >();
    expectTypeOf<Exclude<Methods<Workflows>, keyof NoWorkflows>>().toEqualTypeOf<
      OfWorkers | 'forTransaction' | 'moveOnIn' | 'shown' | 'graphIn' | 'groupJobs'
    >();

    for (const option of [
      'schedules: schedulesIn(queueSchedules)',
      'limits: limitsIn(control, { … })',
      'workflows: workflowsIn(workflows)',
    ]) {
      const text = `Type 'Absent<"first write createQueue({ ${option} })">' has no call signatures`;
      expect(mistakes.filter((mistake) => mistake.includes(text))).toHaveLength(1);
    }
  });
});
