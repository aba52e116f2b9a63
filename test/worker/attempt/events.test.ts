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
});
