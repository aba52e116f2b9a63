import { isDeepStrictEqual } from 'node:util';
import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handle,
  runNext,
  unvalidated,
} from 'drizzle-queue';
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { nextTurn } from '../../../src/core/runtime.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<string>(), maxAttempts: 2, backoff: fixedBackoff(0) });

describe('events', () => {
  test('tell the life of a job, each after the database knows', async () => {
    const told: string[] = [];
    const worker = createWorker(database.db, {
      queue,
      name: 'web-1',
      queues: { default: { concurrency: 1 } },
      handlers: [
        handle(work, ({ payload }) => {
          if (payload === 'bad') throw new Error('no');
        }),
      ],
    });
    worker.on('started', ({ name, queues }) => told.push(`started ${name} ${queues}`));
    const claimed: string[] = [];
    worker.on('claimed', ({ queue, count }) => claimed.push(`${count} of ${queue}`));
    worker.on('completed', ({ job }) => told.push(`completed ${job.payload}`));
    worker.on('failed', ({ job, retryInMs }) => told.push(`failed ${job.payload} retry ${retryInMs}`));
    worker.on('discarded', ({ job }) => told.push(`discarded ${job.payload}`));
    worker.on('stopped', () => told.push('stopped'));
    const states: unknown[] = [];
    worker.on('discarded', async ({ job }) => states.push((await queue.find(database.db, job.id))?.state));
    await queue.enqueue(database.db, work, 'good');
    await queue.enqueue(database.db, work, 'bad');
    const idle = nextEvent(worker, 'idle');
    await worker.start();
    await idle;
    await worker.stop();
    expect(told).toEqual([
      'started web-1 default',
      'completed good',
      'failed bad retry 0',
      'failed bad retry undefined',
      'discarded bad',
      'stopped',
    ]);
    expect(claimed).toEqual(['1 of default', '1 of default', '1 of default']);
    await until(() => states.length > 0);
    expect(states).toEqual(['discarded']);
  });

  test('a listener that throws harms nothing: it is an error of the worker', async () => {
    const worker = createWorker(database.db, { queue, handlers: [handle(work, () => {})] });
    worker.on('completed', () => {
      throw new Error('a bad listener');
    });
    const error = nextEvent(worker, 'error');
    await queue.enqueue(database.db, work, 'x');
    await worker.start();
    expect((await error)[0]).toMatchObject({
      error: { message: 'a bad listener' },
      during: "a listener of 'completed'",
    });
    await worker.stop();
  });

  test('a listener that is async and rejects harms nothing: it is an error of the worker', async () => {
    const worker = createWorker(database.db, { queue, handlers: [handle(work, () => {})] });
    worker.on('completed', async () => {
      await Promise.resolve();
      throw new Error('a bad async listener');
    });
    const error = nextEvent(worker, 'error');
    await queue.enqueue(database.db, work, 'x');
    await worker.start();
    expect((await error)[0]).toMatchObject({
      error: { message: 'a bad async listener' },
      during: "a listener of 'completed'",
    });
    await worker.stop();
  });

  test.each([
    [
      'throws',
      (error: unknown) => {
        throw error;
      },
    ],
    ['is async and rejects', async (error: unknown) => await Promise.reject(error)],
  ])(
    'a listener of errors that %s is called once for each, and its own error is printed',
    async (_, fail) => {
      const print = vi.spyOn(console, 'error').mockImplementation(() => {});
      onTestFinished(() => print.mockRestore());
      const events = new WorkerEmitter();
      let calls = 0;
      events.on('error', () => {
        calls++;
        return fail(new Error('a bad listener of errors'));
      });
      events.on('claimed', () => {
        throw new Error('a bad listener');
      });
      events.emit('claimed', { queue: 'default', count: 1, durationMs: 1 });
      await until(() => print.mock.calls.length > 0);
      await nextTurn();
      expect(calls).toBe(1);
      expect(print.mock.calls).toEqual([
        [
          'drizzle-queue worker:',
          expect.objectContaining({
            during: 'a listener of its errors',
            message: 'a bad listener of errors',
          }),
        ],
      ]);
    },
  );

  test('a listener whose own pool has ended is an error of the worker as well', async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    await pool.end();
    const worker = createWorker(database.db, { queue, handlers: [handle(work, () => {})] });
    worker.on('completed', async () => void (await pool.query('select 1')));
    const error = nextEvent(worker, 'error');
    await queue.enqueue(database.db, work, 'x');
    await worker.start();
    onTestFinished(() => worker.stop());
    expect((await error)[0]).toMatchObject({
      error: { message: 'Cannot use a pool after calling end on the pool' },
      during: "a listener of 'completed'",
    });
  });

  test('an error that throws when it is asked what it is reaches its listeners', () => {
    const events = new WorkerEmitter();
    const heard: unknown[] = [];
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    events.on('error', ({ during }) => heard.push(during));
    events.emit('error', { error: proxy, during: 'a test' });
    expect(heard).toEqual(['a test']);
  });

  test('errors that nobody listens to are printed', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const worker = createWorker(database.db, { queue, handlers: [handle(work, () => {})] });
    worker.on('completed', () => {
      throw new Error('unheard');
    });
    const completed = nextEvent(worker, 'completed');
    await queue.enqueue(database.db, work, 'x');
    await worker.start();
    await completed;
    await worker.stop();
    expect(print).toHaveBeenCalledWith(
      'drizzle-queue worker:',
      expect.objectContaining({ during: expect.any(String) }),
    );
    print.mockRestore();
  });

  test('say when an attempt begins, and a job that ends without one never does', async () => {
    const told: string[] = [];
    const { id } = await queue.enqueue(database.db, work, 'cancelled before');
    await database.client`update queue_jobs set cancel_reason = 'not wanted' where id = ${id}`;
    await queue.enqueue(database.db, work, 'good');
    const validated = defineJob('validated', {
      payload: {
        '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'never' }] }) },
      },
    });
    await queue.enqueue(
      database.db,
      defineJob('validated', { maxAttempts: 1, payload: unvalidated<string>() }),
      'refused',
    );
    const worker = createWorker(database.db, {
      queue,
      queues: { default: { concurrency: 1 } },
      handlers: [
        handle(work, ({ payload }) => {
          told.push(`running ${payload}`);
        }),
        handle(validated, () => {}),
      ],
    });
    for (const event of ['began', 'completed', 'cancelled', 'failed'] as const) {
      worker.on(event, ({ job }) => told.push(`${event} ${job.payload}`));
    }
    const idle = nextEvent(worker, 'idle');
    await worker.start();
    await idle;
    await worker.stop();
    expect(told.filter((line) => line.endsWith('good'))).toEqual([
      'began good',
      'running good',
      'completed good',
    ]);
    expect(told.filter((line) => line.endsWith('before'))).toEqual(['cancelled cancelled before']);
    expect(told.filter((line) => line.endsWith('refused'))).toEqual(['began refused', 'failed refused']);
  });

  test('do not show what a handler does to its payload, its job and its dates, nor do other jobs', async () => {
    const changed = defineJob('changed', {
      payload: unvalidated<{ order: { id: number; card?: string } }>(),
      maxAttempts: 1,
    });
    const seen: unknown[] = [];
    const worker = createWorker(database.db, {
      queue,
      queues: { default: { concurrency: 1 } },
      handlers: [
        handle(changed, ({ payload, job }) => {
          seen.push([job.claimedAt.getFullYear(), job.runAt.getFullYear(), job.createdAt.getFullYear()]);
          for (const date of [job.claimedAt, job.runAt, job.createdAt]) date.setFullYear(1999);
          payload.order.card = '4242';
          Reflect.set(job.metadata, 'card', '4242');
          throw new Error('no');
        }),
      ],
    });
    const jobs: unknown[] = [];
    const years = new Set<number>();
    for (const event of ['began', 'failed', 'discarded'] as const) {
      worker.on(event, ({ job }) => {
        jobs.push([job.payload, job.metadata]);
        for (const date of [job.claimedAt, job.runAt, job.createdAt]) years.add(date.getFullYear());
      });
    }
    const enqueued = await queue.enqueueMany(
      database.db,
      changed,
      [1, 2, 3].map((id) => ({ payload: { order: { id } }, metadata: { tenant: `of ${id}` } })),
    );
    await worker.start();
    await until(() => jobs.length === 9);
    await worker.stop();
    const thisYear = new Date().getFullYear();
    expect(seen).toEqual([1, 2, 3].map(() => [thisYear, thisYear, thisYear]));
    expect([...years]).toEqual([thisYear]);
    const told = [1, 2, 3].map((id) => [{ order: { id } }, { tenant: `of ${id}` }]);
    expect(jobs).toHaveLength(9);
    for (const one of told) expect(jobs.filter((job) => isDeepStrictEqual(job, one))).toHaveLength(3);
    for (const { id } of enqueued) {
      const [error] = (await queue.find(database.db, id))?.errors ?? [];
      expect(new Date(error?.startedAt ?? 0).getFullYear()).toBe(thisYear);
    }
  });

  test('nor does the job that runNext returns', async () => {
    const changed = defineJob('changed', { payload: unvalidated<{ card?: string }>() });
    await queue.enqueue(database.db, changed, {});
    const ran = await runNext(database.db, {
      queue,
      handlers: [
        handle(changed, ({ payload }) => {
          payload.card = '4242';
        }),
      ],
    });
    expect(ran?.job.payload).toEqual({});
  });

  test('hand out a job that is plain data, whatever its handler has done to its own', async () => {
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(work, ({ job }) => {
          job.progress({ half: true });
          Reflect.set(job, 'queue', 'changed by the handler');
          Reflect.set(job, 'own', () => 'no data');
        }),
      ],
    });
    const jobs: unknown[] = [];
    for (const event of ['began', 'completed'] as const) worker.on(event, ({ job }) => jobs.push(job));
    const completed = nextEvent(worker, 'completed');
    const { id } = await queue.enqueue(database.db, work, 'x');
    await worker.start();
    await completed;
    await worker.stop();
    for (const job of jobs) {
      expect(structuredClone(job)).toEqual(job);
      expect(job).toMatchObject({ id, queue: 'default', payload: 'x' });
      expect(job).not.toHaveProperty('progress');
      expect(job).not.toHaveProperty('own');
    }
    expect(jobs).toHaveLength(2);
  });
});
