import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  InvalidPayloadError,
  NonRetryableError,
  runNext,
} from 'drizzle-queue';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { notifyWorkers } from '../../src/queries/notify-workers.ts';
import { tables } from '../queries/support/jobs.ts';
import { until } from '../support/until.ts';
import { nextEvent } from '../worker/next-event.ts';

const queue = createQueue();
const greet = defineJob('greet', {
  payload: z.object({ name: z.string(), at: z.iso.datetime().optional() }),
  output: z.object({ text: z.string() }),
  maxAttempts: 2,
  backoff: fixedBackoff(0),
});
const plain = defineJob('plain', { keepResult: false });

/** What every driver, and every version of the server, must do: the main path of the library, from end to end. */
export function behaviours(database: () => Database): void {
  const greeting = handle(greet, async ({ payload }) => ({ text: `Hello, ${payload.name}` }));
  const drainAll = () =>
    drain(database(), { queue, handlers: [greeting, handle(plain, () => {})], deadlineMs: 20_000 });

  test('enqueues with the transaction, or not at all', async () => {
    const db = database();
    const { id } = await db.transaction((tx) => queue.enqueue(tx, greet, { name: 'Ada' }));
    await db
      .transaction(async (tx) => {
        await queue.enqueue(tx, greet, { name: 'nobody' });
        throw new Error('undone');
      })
      .catch(() => undefined);
    const { jobs } = await queue.list(db, { job: greet, state: 'due' });
    expect(jobs.map((job) => [job.id, job.payload.name])).toEqual([[id, 'Ada']]);
    expect(jobs[0]?.createdAt).toBeInstanceOf(Date);
    expect(Math.abs(Date.now() - (jobs[0]?.createdAt.getTime() ?? 0))).toBeLessThan(60_000);
  });

  test('an invalid payload leaves the transaction usable', async () => {
    await database().transaction(async (tx) => {
      await expect(queue.enqueue(tx, greet, { name: 'NUL \0' })).rejects.toThrow(InvalidPayloadError);
      await queue.enqueue(tx, plain);
    });
  });

  test('refuses duplicates, alone and in bulk, in input order', async () => {
    const db = database();
    const first = await queue.enqueue(db, greet, { name: 'Bo' }, { uniqueKey: 'bo' });
    expect(await queue.enqueue(db, greet, { name: 'Bo' }, { uniqueKey: 'bo' })).toEqual({
      id: first.id,
      duplicate: true,
    });
    const many = await queue.enqueueMany(db, greet, [
      { payload: { name: 'Cy' }, uniqueKey: 'cy' },
      { payload: { name: 'Bo' }, uniqueKey: 'bo' },
      { payload: { name: 'Di' } },
    ]);
    expect(many.map(({ duplicate }) => duplicate)).toEqual([false, true, false]);
    expect(many[1]?.id).toBe(first.id);
  });

  test('drains: every job completed, with its output', async () => {
    const drained = await drainAll();
    expect(drained).toMatchObject({ completed: 5, failed: 0, empty: true });
    const { jobs } = await queue.list(database(), { job: greet, state: 'completed' });
    const texts = jobs.map((job) => (job.state === 'completed' ? job.output.text : job.state));
    expect(texts.sort()).toEqual(['Hello, Ada', 'Hello, Bo', 'Hello, Cy', 'Hello, Di']);
  });

  test('fails, retries, discards, and puts back', async () => {
    const db = database();
    const { id } = await queue.enqueue(db, greet, { name: 'Eve' });
    const failing = handle(greet, async ({ job }) => {
      if (job.attempt === 2) throw new NonRetryableError('never');
      throw new Error('not now');
    });
    await drain(db, { queue, handlers: [failing], deadlineMs: 20_000 });
    const discarded = await queue.find(db, greet, id);
    expect(discarded).toMatchObject({
      state: 'discarded',
      errors: [{ message: 'not now' }, { message: 'never' }],
    });
    expect(new Date(discarded?.errors[0]?.at ?? '').getTime()).toBeGreaterThan(Date.now() - 60_000);
    expect(await queue.redrive(db, id)).toEqual({ redriven: 1, duplicates: 0 });
    await drainAll();
    expect(await queue.find(db, greet, id)).toMatchObject({
      state: 'completed',
      output: { text: 'Hello, Eve' },
    });
  });

  test('complete(tx) commits the end of the job with the handler’s writes', async () => {
    const db = database();
    await db.execute(sql`create table if not exists effects (name text)`);
    const { id } = await queue.enqueue(db, greet, { name: 'Flo' });
    const effectful = handle(greet, async ({ payload, complete }) => {
      await db.transaction(async (tx) => {
        await tx.execute(sql`insert into effects values (${payload.name})`);
        await complete(tx, { text: 'done' });
      });
    });
    await drain(db, { queue, handlers: [effectful], deadlineMs: 20_000 });
    expect(await queue.find(db, id)).toMatchObject({ state: 'completed', output: { text: 'done' } });
    const result = await db.execute(sql`select name from effects`);
    expect(JSON.stringify(result)).toContain('Flo');
  });

  test('runNext runs one job in one transaction', async () => {
    const db = database();
    const { id } = await queue.enqueue(db, greet, { name: 'Gus' }, { priority: 0 });
    expect(await runNext(db, { queue, handlers: [greeting] })).toMatchObject({
      job: { id },
      outcome: 'completed',
    });
    expect(await runNext(db, { queue, handlers: [greeting] })).toBeUndefined();
  });

  test('schedules and cancels', async () => {
    const db = database();
    const { id } = await queue.enqueue(db, plain, undefined, { runAt: new Date(Date.now() + 3_600_000) });
    expect(await queue.find(db, id)).toMatchObject({ state: 'scheduled' });
    expect(await queue.cancel(db, id, 'no more')).toEqual({ cancelled: true });
    expect(await queue.find(db, id)).toMatchObject({ state: 'cancelled', errors: [{ message: 'no more' }] });
  });

  test('a worker starts, works and stops', async () => {
    const db = database();
    const done: string[] = [];
    const worker = createWorker(db, {
      queue,
      handlers: [
        handle(greet, async ({ payload }) => {
          done.push(payload.name);
          return { text: payload.name };
        }),
      ],
    });
    await worker.start();
    await queue.enqueueMany(
      db,
      greet,
      Array.from({ length: 50 }, (_, n) => ({ payload: { name: `n${n}` } })),
    );
    await until(() => done.length === 50);
    await worker.stop();
    expect(new Set(done).size).toBe(50);
    const { jobs } = await queue.list(db, { state: 'running' });
    expect(jobs).toEqual([]);
  });

  test('a worker hears of a job', async () => {
    const db = database();
    const worker = createWorker(db, { queue, handlers: [greeting], pollIntervalMs: 60_000 });
    const listening = nextEvent(worker, 'listening');
    const idle = nextEvent(worker, 'idle');
    const completed = nextEvent(worker, 'completed');
    await worker.start();
    await listening;
    await idle;
    await db.transaction(async (tx) => {
      await queue.enqueue(tx, greet, { name: 'Hal' });
      await notifyWorkers(tx, tables, 'default');
    });
    expect((await completed)[0].job.payload).toEqual({ name: 'Hal' });
    await worker.stop();
  });
}
