import { createQueue, defineJob, drain, fixedBackoff, handle, snooze, unvalidated } from 'drizzle-queue';
import { queueJobs, queueWorkers } from 'drizzle-queue/schema';
import { beforeEach, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<string>(), backoff: fixedBackoff(3_600_000) });

beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers`;
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
