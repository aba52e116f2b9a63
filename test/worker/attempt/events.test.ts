import { createQueue, createWorker, defineJob, fixedBackoff, handle, unvalidated } from 'drizzle-queue';
import { describe, expect, test, vi } from 'vitest';
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
