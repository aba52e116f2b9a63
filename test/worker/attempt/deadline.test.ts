import {
  createQueue,
  createWorker,
  defineJob,
  fail,
  fixedBackoff,
  handle,
  handleBatch,
  JobDeadlineError,
  NonRetryableError,
  runNext,
  snooze,
  type Worker,
} from 'drizzle-queue';
import { afterEach, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase();
const queue = createQueue();
/** As long as a busy machine may take to begin a job. */
const SOON_MS = 3_000;
const HOUR_MS = 3_600_000;
const soon = defineJob('soon', { deadlineMs: SOON_MS, backoff: fixedBackoff(HOUR_MS) });
const late = defineJob('late', { deadlineMs: HOUR_MS, backoff: fixedBackoff(HOUR_MS) });

let worker: Worker | undefined;
afterEach(async () => {
  await worker?.stop();
});

const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
const anHourPasses = () => database.client`update queue_jobs set created_at = now() - interval '1 hour'`;

async function start(handlers: Parameters<typeof createWorker>[1]['handlers']): Promise<Worker> {
  worker = createWorker(database.db, { queue, handlers, log: false });
  await worker.start();
  return worker;
}

describe('deadlineMs', () => {
  test('aborts the signal with a JobDeadlineError; once the handler has thrown, the job is discarded', async () => {
    let reason: unknown;
    let undone = false;
    const working = await start([
      handle(soon, async ({ signal }) => {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        reason = signal.reason;
        // Nothing cuts it off while it takes back what it has done.
        await queue.find(database.db, 1);
        undone = true;
        throw new Error('stopped');
      }),
    ]);
    const discarded = nextEvent(working, 'discarded');
    const { id } = await queue.enqueue(database.db, soon);
    const [{ error }] = await discarded;
    expect(reason).toBeInstanceOf(JobDeadlineError);
    expect(error).toBe(reason);
    expect(undone).toBe(true);
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'discarded',
      attempt: 1,
      errors: [{ name: 'JobDeadlineError', message: expect.stringContaining('3000 ms') }],
    });
  });

  test('discards the job of a handler that returns fail() then, as one that throws', async () => {
    await start([
      handle(soon, async ({ signal }) => {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        return fail(new Error('aborted'));
      }),
    ]);
    const { id } = await queue.enqueue(database.db, soon);
    await until(async () => (await stateOf(id)) === 'discarded');
    expect((await queue.find(database.db, id))?.errors).toMatchObject([{ name: 'JobDeadlineError' }]);
  });

  test('lets a handler complete its job that has done its work by then', async () => {
    await start([
      handle(soon, async ({ signal }) => {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        return 'done all the same';
      }),
    ]);
    const { id } = await queue.enqueue(database.db, soon);
    expect(await queue.waitFor(database.db, soon, id)).toMatchObject({ state: 'completed' });
  });

  test('makes a job due that waits for its next attempt, or is snoozed, and discards it unrun', async () => {
    let runs = 0;
    const snoozed = defineJob('snoozed', { deadlineMs: SOON_MS });
    await start([
      handle(soon, async () => {
        runs++;
        throw new Error('first');
      }),
      handle(snoozed, async () => {
        runs++;
        return snooze(HOUR_MS);
      }),
    ]);
    const failed = await queue.enqueue(database.db, soon);
    const asleep = await queue.enqueue(database.db, snoozed);
    for (const { id } of [failed, asleep]) await until(async () => (await stateOf(id)) === 'discarded');
    expect(runs).toBe(2);
    expect((await queue.find(database.db, failed.id))?.errors).toMatchObject([
      { message: 'first' },
      { name: 'JobDeadlineError' },
    ]);
  });

  test('that has passed in the queue discards a job before it begins, also in runNext', async () => {
    const handlers = [handle(late, async () => expect.unreachable())];
    const ids = [(await queue.enqueue(database.db, late)).id, (await queue.enqueue(database.db, late)).id];
    await anHourPasses();
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({
      error: { name: 'JobDeadlineError' },
    });
    await start(handlers);
    for (const id of ids) await until(async () => (await stateOf(id)) === 'discarded');
  });

  test('that has passed discards a job of a batch handler alone, and the others run', async () => {
    const called: number[] = [];
    const handlers = [
      handleBatch(late, { maxSize: 10, maxWaitMs: 60_000 }, async (jobs) => {
        for (const { job } of jobs) called.push(job.id);
      }),
    ];
    const entries = Array.from({ length: 10 }, () => ({}));
    const ids = (await queue.enqueueMany(database.db, late, entries)).map(({ id }) => Number(id));
    const [old = 0, ...others] = ids;
    await database.client`
      update queue_jobs set created_at = now() - interval '1 hour' where id = ${old}`;
    await start(handlers);
    await until(async () => (await stateOf(old)) === 'discarded');
    for (const id of others) await until(async () => (await stateOf(id)) === 'completed');
    expect(called.sort((a, b) => a - b)).toEqual(others);
  });

  test('changes nothing for a job that ends in time', async () => {
    await start([
      handle(late, async ({ signal }) => {
        signal.throwIfAborted();
        throw new NonRetryableError('its own');
      }),
    ]);
    const { id } = await queue.enqueue(database.db, late);
    await until(async () => (await stateOf(id)) === 'discarded');
    expect((await queue.find(database.db, id))?.errors).toMatchObject([{ message: 'its own' }]);
  });

  test.each([0, -1, Number.NaN, 366 * 24 * HOUR_MS])('of %s ms is refused', (deadlineMs) => {
    expect(() => defineJob('refused', { deadlineMs })).toThrow(RangeError);
  });
});
