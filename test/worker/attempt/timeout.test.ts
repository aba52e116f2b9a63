import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handle,
  JobTimeoutError,
  LeaseLostError,
  type Worker,
} from 'drizzle-queue';
import { afterEach, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase();
const queue = createQueue();
const slow = defineJob('slow', { timeoutMs: 50, backoff: fixedBackoff(3_600_000) });

let worker: Worker | undefined;
afterEach(async () => {
  await worker?.stop();
});

describe('timeoutMs', () => {
  test('aborts the signal with a JobTimeoutError, which is the error of the attempt', async () => {
    let reason: unknown;
    worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(slow, async ({ signal }) => {
          await new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              reason = signal.reason;
              reject(new Error('stopped'));
            });
          });
        }),
      ],
    });
    const failed = nextEvent(worker, 'failed');
    const { id } = await queue.enqueue(database.db, slow);
    await worker.start();
    const [{ error }] = await failed;
    expect(reason).toBeInstanceOf(JobTimeoutError);
    expect(error).toBe(reason);
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'scheduled',
      errors: [{ name: 'JobTimeoutError', message: expect.stringContaining('50 ms') }],
    });
  });

  test('settles a failure even if the handler ignores it; whatever it does later is refused', async () => {
    let finishLate = () => {};
    const late = new Promise<void>((resolve) => {
      finishLate = resolve;
    });
    let lateError: unknown;
    let returned = false;
    worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(slow, async ({ complete }) => {
          await late;
          await database.db
            .transaction((tx) => complete(tx))
            .catch((error: unknown) => {
              lateError = error;
            });
          returned = true;
          return 'a late output';
        }),
      ],
    });
    const events: string[] = [];
    for (const event of ['completed', 'failed', 'lost', 'error'] as const)
      worker.on(event, () => events.push(event));
    const failed = nextEvent(worker, 'failed');
    const { id } = await queue.enqueue(database.db, slow);
    await worker.start();
    await failed;
    const settled = await queue.find(database.db, id);
    expect(settled).toMatchObject({ state: 'scheduled', attempt: 1, errors: [{ name: 'JobTimeoutError' }] });
    finishLate();
    await until(() => returned);
    expect(lateError).toBeInstanceOf(LeaseLostError);
    await worker.stop();
    expect(await queue.find(database.db, id)).toEqual(settled);
    expect(events).toEqual(['failed']);
  });

  test('a handler that blocks the event loop past its timeout and then returns has still failed or completed, once', async () => {
    const blocking = defineJob('blocking', { timeoutMs: 20 });
    worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(blocking, () => {
          const end = performance.now() + 100;
          while (performance.now() < end);
        }),
      ],
    });
    const done = nextEvent(worker, 'completed');
    await queue.enqueue(database.db, blocking);
    await worker.start();
    // It returned before the timer could fire: the work is done, and saying so is right.
    expect((await done)[0].job.attempt).toBe(1);
  });
});
