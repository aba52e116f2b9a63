import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Around,
  createQueue,
  createWorker,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  runNext,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 6 });
const work = defineJob('work', {
  payload: unvalidated<string>(),
  maxAttempts: 3,
  timeoutMs: 1_000,
  backoff: fixedBackoff(3_600_000),
});

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

type Run = NonNullable<Around['run']>;

/** Enqueues one job, drains it with this handler inside `run`, and answers the job. */
async function drained(run: Run, handler: () => unknown = () => 'done') {
  const queue = createQueue({ around: { run } });
  const { id } = await queue.enqueue(database.db, work, 'x');
  await drain(database.db, { queue, handlers: [handle(work, handler)], deadlineMs: 10_000 });
  return await queue.find(database.db, id);
}

const failedWith = (message: string) => ({
  state: 'scheduled',
  attempt: 1,
  errors: [{ message: expect.stringContaining(message) }],
});

describe('around.run', () => {
  test('is around each handler of a worker, a drain and runNext, and hears what they answer', async () => {
    const seen: unknown[] = [];
    const storage = new AsyncLocalStorage<number>();
    const queue = createQueue({
      around: {
        run: async ({ job, payload, signal }, next) => {
          seen.push([payload, signal.aborted, await storage.run(job.id, next)]);
        },
      },
    });
    const handlers = [handle(work, async ({ job }) => storage.getStore() === job.id)];
    await queue.enqueue(database.db, work, 'drain');
    await drain(database.db, { queue, handlers, deadlineMs: 10_000 });
    await queue.enqueue(database.db, work, 'runNext');
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
    await queue.enqueue(database.db, work, 'worker');
    const worker = createWorker(database.db, { queue, handlers });
    await worker.start();
    await until(() => seen.length === 3);
    await worker.stop();
    expect(seen).toEqual([
      ['drain', false, true],
      ['runNext', false, true],
      ['worker', false, true],
    ]);
  });

  test('an error that it throws is the attempt’s, before the handler and after it', async () => {
    let ran = 0;
    const before = await drained(
      () => {
        throw new Error('before');
      },
      () => ran++,
    );
    expect(before).toMatchObject(failedWith('before'));
    expect(ran).toBe(0);
    const after = await drained(
      async (_context, next) => {
        await next();
        throw new Error('after');
      },
      () => ran++,
    );
    expect(after).toMatchObject(failedWith('after'));
    expect(ran).toBe(1);
  });

  test('swallows no error of the handler, and no result: what it returns is ignored', async () => {
    const swallowed = await drained(
      (_context, next) => next().catch(() => 'all is well'),
      () => {
        throw new Error('by the handler');
      },
    );
    expect(swallowed).toMatchObject(failedWith('by the handler'));
    expect(await drained(async (_context, next) => void (await next()))).toMatchObject({
      state: 'completed',
      output: 'done',
    });
    expect(
      await drained(
        (_context, next) => next(),
        () => snooze(3_600_000),
      ),
    ).toMatchObject({ state: 'scheduled', attempt: 0, errors: [] });
  });

  test('waits for the handler even if it does not', async () => {
    const record = await drained(
      (_context, next) => void next(),
      () => new Promise((resolve) => setTimeout(() => resolve('late'), 30)),
    );
    expect(record).toMatchObject({ state: 'completed', output: 'late' });
  });

  test('that calls next never or twice fails the attempt, which says so, and the handler runs once at most', async () => {
    let ran = 0;
    const handler = () => {
      ran++;
    };
    expect(await drained(() => 'forgotten', handler)).toMatchObject(
      failedWith('around.run did not call next()'),
    );
    expect(ran).toBe(0);
    const twice: Run = async (_context, next) => {
      await next();
      await next();
    };
    expect(await drained(twice, handler)).toMatchObject(failedWith('around.run called next() twice'));
    expect(ran).toBe(1);
    const heedless: Run = async (_context, next) => {
      void next();
      await next().catch(() => undefined);
      void next();
    };
    expect(await drained(heedless, handler)).toMatchObject(failedWith('around.run called next() twice'));
    expect(ran).toBe(2);
  });

  test.each(['worker', 'runNext'] as const)(
    'takes part in the timeout of a %s; next() after it calls no handler',
    async (how) => {
      const timed = defineJob('timed', { timeoutMs: 50, maxAttempts: 3, backoff: fixedBackoff(3_600_000) });
      let ran = 0;
      let afterwards: unknown;
      const queue = createQueue({
        around: {
          run: async ({ signal }, next) => {
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            // In a later turn the attempt is over.
            await new Promise(setImmediate);
            afterwards = await next().catch((error: unknown) => error);
          },
        },
      });
      const handlers = [
        handle(timed, () => {
          ran++;
        }),
      ];
      const { id } = await queue.enqueue(database.db, timed);
      if (how === 'runNext') await runNext(database.db, { queue, handlers });
      else await drain(database.db, { queue, handlers, deadlineMs: 10_000 });
      await until(() => afterwards !== undefined);
      expect(await queue.find(database.db, id)).toMatchObject({
        state: 'scheduled',
        errors: [{ name: 'JobTimeoutError' }],
      });
      expect(afterwards).toMatchObject({ name: 'LeaseLostError' });
      expect(ran).toBe(0);
    },
  );

  test('that throws while the handler runs ends the attempt, and aborts the handler’s signal', async () => {
    const error = new Error('impatient');
    let reason: unknown;
    const queue = createQueue({
      around: {
        run: async (_context, next) => {
          void next();
          throw error;
        },
      },
    });
    const handlers = [
      handle(work, ({ signal }) => {
        reason = signal.reason;
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason;
            resolve('late');
          });
        });
      }),
    ];
    const { id } = await queue.enqueue(database.db, work, 'x');
    const { failed } = await drain(database.db, { queue, handlers, deadlineMs: 10_000 });
    expect(failed).toBe(1);
    expect(reason).toBe(error);
    expect(await queue.find(database.db, id)).toMatchObject(failedWith('impatient'));
  });

  test('cannot fail a job that its handler has completed in its own transaction', async () => {
    const queue = createQueue({
      around: {
        run: async (_context, next) => {
          await next();
          throw new Error('too late');
        },
      },
    });
    const { id } = await queue.enqueue(database.db, work, 'x');
    const handlers = [handle(work, ({ complete }) => database.db.transaction((tx) => complete(tx, 'done')))];
    const counts = await drain(database.db, { queue, handlers, deadlineMs: 10_000 });
    expect(counts).toMatchObject({ completed: 1, failed: 0 });
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'completed',
      output: 'done',
      errors: [],
    });
  });
});
