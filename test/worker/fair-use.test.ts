import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { describe, expect, test } from 'vitest';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

describe('jobs that were claimed ahead', () => {
  const database = useTestDatabase({ max: 10 });
  const queue = createQueue();
  const work = defineJob('work', { payload: unvalidated<{ long: boolean }>() });

  test('do not wait for a slow one among them', async () => {
    const slow = gate();
    let done = 0;
    const worker = createWorker(database.db, {
      queue,
      queues: { default: { concurrency: 2 } },
      handlers: [
        handle(work, async ({ payload }) => {
          if (payload.long) await slow.opened;
          done++;
        }),
      ],
    });
    await worker.start();
    const short = (count: number) => Array.from({ length: count }, () => ({ payload: { long: false } }));
    await queue.enqueueMany(database.db, work, short(100));
    await until(() => done === 100);
    let largest = 0;
    worker.on('claimed', ({ count }) => {
      largest = Math.max(largest, count);
    });
    await queue.enqueueMany(database.db, work, [{ payload: { long: true } }, ...short(500)]);
    await until(() => done === 600);
    expect(largest).toBeGreaterThan(100);
    await until(async () => (await database.db.$count(queueJobs)) === 1);
    slow.open();
    await until(() => done === 601);
    await worker.stop();
  });

  test('leave the event loop its turns, although their handlers wait for nothing', async () => {
    const begun = new Map<number, number>();
    let turn = 0;
    let done = 0;
    let over = false;
    const countTurns = () => {
      turn++;
      if (!over) setImmediate(countTurns);
    };
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(work, () => {
          begun.set(turn, (begun.get(turn) ?? 0) + 1);
          done++;
        }),
      ],
    });
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 2_000 }, () => ({ payload: { long: false } })),
    );
    countTurns();
    await worker.start();
    await until(() => done === 2_000);
    over = true;
    await worker.stop();
    // One limit's worth when a claim comes back, and one when the turn begins.
    expect(Math.max(...begun.values())).toBeLessThanOrEqual(200);
  });

  test('go to another worker when their own cannot begin them', async () => {
    const stuck = gate();
    let own = 0;
    let others = 0;
    const greedy = createWorker(database.db, {
      queue,
      queues: { default: { concurrency: 2 } },
      handlers: [
        handle(work, async ({ payload }) => {
          own++;
          if (payload.long) await stuck.opened;
        }),
      ],
    });
    await greedy.start();
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 100 }, () => ({ payload: { long: false } })),
    );
    await until(() => own === 100);
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 60 }, () => ({ payload: { long: true } })),
    );
    // It expected them to be as short as the others, and took them all.
    await until(async () => (await database.db.$count(queueJobs)) === 60 && own === 102);
    const idle = createWorker(database.db, {
      queue,
      handlers: [handle(work, () => void others++)],
    });
    await idle.start();
    await until(() => others === 58);
    expect(own).toBe(102);
    stuck.open();
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    await Promise.all([greedy.stop(), idle.stop()]);
  });
});

describe('a handler that blocks the event loop', () => {
  const database = useTestDatabase({ max: 10 });
  const queue = createQueue();
  const work = defineJob('work', { payload: unvalidated<{ blockMs: number }>() });

  test('for 5 seconds breaks nothing: every job runs once, nothing is lost, nobody is declared gone', async () => {
    const runs = new Map<number, number>();
    const errors: unknown[] = [];
    const handlers = [
      handle(work, ({ payload, job }) => {
        runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
        const until = performance.now() + payload.blockMs;
        while (performance.now() < until);
      }),
    ];
    const workers = [1, 2].map(() => createWorker(database.db, { queue, handlers }));
    for (const worker of workers) {
      worker.on('error', ({ error }) => errors.push(error));
      worker.on('lost', ({ job }) => errors.push(job));
    }
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 300 }, (_, index) => ({ payload: { blockMs: index === 150 ? 5_000 : 0 } })),
    );
    await Promise.all(workers.map((worker) => worker.start()));
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(runs.size).toBe(300);
    expect([...runs.values()].every((count) => count === 1)).toBe(true);
    expect(errors).toEqual([]);
  });
});
