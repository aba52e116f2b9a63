import {
  createQueue,
  defineJob,
  defineSchedule,
  drain,
  fixedBackoff,
  handle,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import { queueJobs, queueWorkers } from 'drizzle-queue/schema';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<string>(), backoff: fixedBackoff(3_600_000) });
/** More than a sweep reads at once that finds some. */
const LOCKED = 3_000;

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

describe('drain', () => {
  test('works until nothing is due, and counts', async () => {
    await queue.enqueueMany(
      database.db,
      work,
      ['good', 'good', 'bad', 'later'].map((payload) => ({ payload })),
    );
    await queue.enqueue(database.db, work, 'tomorrow', { delayMs: 86_400_000 });
    const drained = await drain(database.db, {
      queue,
      deadlineMs: 20_000,
      handlers: [
        handle(work, ({ payload }) => {
          if (payload === 'bad') throw new Error('bad');
          return payload === 'later' ? snooze(3_600_000) : undefined;
        }),
      ],
    });
    expect(drained).toEqual({
      completed: 2,
      failed: 1,
      discarded: 0,
      snoozed: 1,
      cancelled: 0,
      interrupted: 0,
      empty: true,
    });
    expect(await database.db.select().from(queueJobs)).toHaveLength(3);
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
  });

  test('ends beside thousands whose rows are locked, although another job comes meanwhile', async () => {
    await queue.enqueueMany(database.db, work, new Array(LOCKED).fill({ payload: 'locked' }));
    const app = await database.client.reserve();
    onTestFinished(() => app.release());
    await app`begin`;
    onTestFinished(async () => void (await app`rollback`));
    await app`select from queue_jobs for update`;
    let claims = 0;
    onTestFinished(() => atFaultPoints());
    atFaultPoints(async (point) => {
      // When it has found the others.
      if (point === 'claim: answered' && ++claims === 10) await queue.enqueue(database.db, work, 'another');
    });
    const handlers = [handle(work, () => undefined)];
    const drained = await drain(database.db, { queue, deadlineMs: 60_000, handlers });
    expect(drained).toMatchObject({ completed: 1, empty: true });
  });

  test('ends at a signal, and gives what runs back', async () => {
    await queue.enqueue(database.db, work, 'long');
    const stop = new AbortController();
    const drained = await drain(database.db, {
      queue,
      deadlineMs: 60_000,
      signal: stop.signal,
      handlers: [
        handle(work, async ({ signal }) => {
          stop.abort();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          signal.throwIfAborted();
        }),
      ],
    });
    expect(drained).toMatchObject({ completed: 0, failed: 0, interrupted: 1, empty: false });
    expect(await database.db.select().from(queueJobs)).toMatchObject([{ attempt: 0, workerId: null }]);
    const never = await drain(database.db, {
      queue,
      deadlineMs: 60_000,
      signal: stop.signal,
      handlers: [handle(work, () => undefined)],
    });
    expect(never).toMatchObject({ completed: 0, empty: false });
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
  });

  test('refuses what is not a signal', async () => {
    const options = { queue, handlers: [], deadlineMs: 1, signal: 5 as unknown as AbortSignal };
    await expect(drain(database.db, options)).rejects.toThrow('drain: signal must be an AbortSignal, got 5');
  });

  test.each([
    [{ concurrency: 0 }, 'drain: concurrency must be a whole number from 1'],
    [{ queues: {} }, 'drain: queues is empty'],
    [{ queues: { mail: { concurrency: 0 } } }, "drain: queues['mail'].concurrency must be"],
    [{ jobs: [defineJob('forgotten')] }, "drain: jobs has kinds without a handler: 'forgotten'"],
    [{ metrics: 1 }, 'drain: metrics must be'],
    [
      { schedules: [defineSchedule('nightly', { job: work, payload: '1', cron: '0 3 * * *' })] },
      'drain: its queue has no schedules',
    ],
  ])('names itself where it refuses an option: %j', async (wrong, message) => {
    const options = { queue, handlers: [handle(work, () => undefined)], deadlineMs: 1_000, ...wrong };
    await expect(drain(database.db, options as Parameters<typeof drain>[1])).rejects.toThrow(message);
  });

  test('works on what its handlers enqueue meanwhile', async () => {
    await queue.enqueue(database.db, work, '3');
    const seen: string[] = [];
    await drain(database.db, {
      queue,
      deadlineMs: 20_000,
      handlers: [
        handle(work, async ({ payload }) => {
          seen.push(payload);
          if (payload !== '0') await queue.enqueue(database.db, work, String(Number(payload) - 1));
        }),
      ],
    });
    expect(seen).toEqual(['3', '2', '1', '0']);
  });

  test('at the deadline it stops, gives back what runs, and says that work is left', async () => {
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 30 }, () => ({ payload: 'long' })),
    );
    const drained = await drain(database.db, {
      queue,
      // Ten begin before it, on a busy machine too.
      deadlineMs: 3_000,
      handlers: [
        handle(
          work,
          ({ signal }) =>
            new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
        ),
      ],
    });
    expect(drained).toMatchObject({ completed: 0, failed: 0, interrupted: 10, empty: false });
    const left = await database.db.select().from(queueJobs);
    expect(left.map(({ attempt, workerId }) => [attempt, workerId])).toEqual(left.map(() => [0, null]));
  });

  test('refuses a deadline that is none', async () => {
    await expect(
      drain(database.db, { queue, handlers: [handle(work, () => {})], deadlineMs: Number.NaN }),
    ).rejects.toThrow('deadlineMs must be');
  });
});
