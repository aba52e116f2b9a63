import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  fixedBackoff,
  type HandlerContext,
  handle,
  JobCancelledError,
  type JobDefinition,
  LeaseLostError,
  NonRetryableError,
  runNext,
  snooze,
  type Worker,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { requestCancel } from '../../../src/core/queries/operate/request-cancel.ts';
import { removeWorker } from '../../../src/core/queries/presence/remove-worker.ts';
import { tables } from '../../queries/support/jobs.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { countLooks, expectHeardAtOnce } from './looks.ts';

const database = useTestDatabase({ max: 6 });
const queue = createQueue();
const work = defineJob('work', { maxAttempts: 3, backoff: fixedBackoff(3_600_000) });
type Context = HandlerContext<typeof work>;

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_pauses');
});

/** Resolves when the signal is aborted, with its reason. */
function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
}

/** A worker that has begun one job, whose handler is `run`. */
async function running(
  run: (context: Context) => unknown,
  {
    listen = true,
    db = database.db,
    job = work,
  }: { listen?: boolean; db?: Database; job?: JobDefinition<string, undefined, undefined> } = {},
) {
  const contexts: Context[] = [];
  const events: string[] = [];
  const worker = createWorker(db, {
    queue,
    listen,
    shutdownTimeoutMs: 0,
    handlers: [
      handle(job, (context) => {
        contexts.push(context);
        return run(context) as undefined;
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  for (const event of ['completed', 'failed', 'discarded', 'snoozed', 'cancelled', 'lost'] as const)
    worker.on(event, () => events.push(event));
  const mode = nextEvent(worker, listen ? 'listening' : 'polling');
  const { id } = await queue.enqueue(database.db, job);
  await worker.start();
  await mode;
  await until(() => contexts.length === 1);
  return { worker, id, events, contexts, find: () => queue.find(database.db, id) };
}

describe('a running job that is cancelled', () => {
  test.each([true, false])(
    'hears of it at once, and ends as cancelled when its handler throws; listening: %s',
    async (listen) => {
      let reason: unknown;
      const told = gate();
      const { db, looks } = countLooks(database.url);
      const { worker, id, events, find } = await running(
        async ({ signal }) => {
          reason = await aborted(signal);
          told.open();
          throw new Error('I was told to stop');
        },
        { listen, db },
      );
      const cancelled = nextEvent(worker, 'cancelled');
      expect(await queue.cancel(database.db, id, 'the customer left')).toEqual({
        cancelled: 'requested',
      });
      await expectHeardAtOnce(told.opened, { listen, looks });
      expect((await cancelled)[0]).toMatchObject({ reason: 'the customer left', job: { id } });
      expect(reason).toBeInstanceOf(JobCancelledError);
      expect(reason).toMatchObject({ jobId: id, kind: 'work', reason: 'the customer left' });
      const record = await find();
      // What the handler threw on its way out is of no interest.
      expect(record).toMatchObject({
        state: 'cancelled',
        attempt: 1,
        errors: [{ attempt: 1, name: 'Cancelled', message: 'the customer left' }],
      });
      expect(events).toEqual(['cancelled']);
    },
  );

  test('when the worker has missed the notification, it finds out all the same', async () => {
    const { id, worker } = await running(async ({ signal }) => {
      throw await aborted(signal);
    });
    const cancelled = nextEvent(worker, 'cancelled');
    await createQueue({ wakeUps: false }).cancel(database.db, id);
    await cancelled;
  });

  test('completes when its handler returns all the same: the request came too late', async () => {
    const { id, worker, find } = await running(async ({ signal }) => {
      await aborted(signal);
    });
    const completed = nextEvent(worker, 'completed');
    await queue.cancel(database.db, id);
    await completed;
    expect(await find()).toMatchObject({ state: 'completed', errors: [] });
  });

  test('completes when complete(tx) commits, although the handler throws afterwards', async () => {
    const { id, worker, find, events } = await running(async ({ signal, complete }) => {
      await aborted(signal);
      await database.db.transaction((tx) => complete(tx));
      throw new Error('afterwards');
    });
    const completed = nextEvent(worker, 'completed');
    await queue.cancel(database.db, id);
    await completed;
    expect(await find()).toMatchObject({ state: 'completed' });
    expect(events).toEqual(['completed']);
  });

  test('ends as cancelled when complete(tx) does not commit', async () => {
    const { id, worker, find } = await running(async ({ signal, complete }) => {
      await aborted(signal);
      await database.db
        .transaction(async (tx) => {
          await complete(tx);
          throw new Error('rolled back');
        })
        .catch(() => {});
    });
    const cancelled = nextEvent(worker, 'cancelled');
    await queue.cancel(database.db, id);
    await cancelled;
    expect(await find()).toMatchObject({ state: 'cancelled' });
  });

  test.each<[string, () => unknown]>([
    ['snoozes', () => snooze(1_000)],
    [
      'throws on its last attempt',
      () => {
        throw new Error('no');
      },
    ],
  ])('ends as cancelled when its handler then %s', async (_, end) => {
    const once = defineJob('once', { maxAttempts: 1 });
    const { id, worker, find, events } = await running(
      async ({ signal }) => {
        await aborted(signal);
        return end();
      },
      { job: once },
    );
    const cancelled = nextEvent(worker, 'cancelled');
    await queue.cancel(database.db, id, 'why');
    await cancelled;
    expect(await find()).toMatchObject({ state: 'cancelled', errors: [{ message: 'why' }] });
    expect(events).toEqual(['cancelled']);
  });

  test('ends as cancelled when its worker stops before its handler has ended', async () => {
    const { id, worker, contexts, find } = await running(() => new Promise(() => {}));
    await queue.cancel(database.db, id, 'why');
    await until(() => contexts[0]?.signal.aborted);
    await worker.stop();
    expect(await find()).toMatchObject({ state: 'cancelled', errors: [{ message: 'why' }] });
  });

  test('hears of it while its worker waits for it to end', async () => {
    const { id, worker, find } = await (async () => {
      const contexts: Context[] = [];
      const worker = createWorker(database.db, {
        queue,
        handlers: [
          handle(work, async (context) => {
            contexts.push(context);
            throw await aborted(context.signal);
          }),
        ],
      });
      const listening = nextEvent(worker, 'listening');
      const { id } = await queue.enqueue(database.db, work);
      await worker.start();
      await listening;
      await until(() => contexts.length === 1);
      return { id, worker, find: () => queue.find(database.db, id) };
    })();
    const startMs = performance.now();
    const stopped = worker.stop();
    await queue.cancel(database.db, id);
    await stopped;
    // It would have waited for 25 seconds.
    expect(performance.now() - startMs).toBeLessThan(15_000);
    expect(await find()).toMatchObject({ state: 'cancelled' });
  });
});

test('jobs that are claimed ahead hear of it before they begin, and are not called', async () => {
  const quick = defineJob('quick');
  const block = gate();
  const called = new Set<number>();
  const heard = gate();
  const worker = createWorker(database.db, {
    queue,
    queues: { default: { concurrency: 1 } },
    handlers: [
      handle(quick, ({ job }) => void called.add(job.id)),
      handle(work, async ({ signal }) => {
        block.open();
        await aborted(signal);
        heard.open();
        signal.throwIfAborted();
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  let cancelled = 0;
  worker.on('cancelled', () => cancelled++);
  const listening = nextEvent(worker, 'listening');
  await worker.start();
  await listening;
  // It learns that they are quick, and claims ahead.
  await queue.enqueueMany(database.db, quick, new Array(200).fill({}));
  await until(() => called.size === 200);
  await database.db.transaction(async (tx) => {
    await queue.enqueue(tx, work);
    await queue.enqueueMany(tx, quick, new Array(50).fill({}));
  });
  await block.opened;
  // No claim is under way that brings more of them.
  await until(() => worker.health().unansweredMs.claims === undefined);
  const held = await database.client`select from queue_jobs where worker_id is not null`;
  expect(held.length).toBeGreaterThan(1);
  await queue.cancelMany(database.db, { queue: 'default' });
  await heard.opened;
  await until(() => cancelled > 0);
  await until(async () => (await database.client`select from queue_jobs`).length === 0);
  expect(called.size).toBe(200);
});

describe('a request of which the worker has not heard', () => {
  test.each<[string, boolean, () => unknown]>([
    [
      'fails',
      true,
      () => {
        throw new Error('by itself');
      },
    ],
    ['snoozes', false, () => snooze(3_600_000)],
  ])('ends the job as cancelled when it %s', async (_, fails, end) => {
    const go = gate();
    const { id, worker, find, events } = await running(async () => {
      await go.opened;
      return end();
    });
    const cancelled = nextEvent(worker, 'cancelled');
    await requestCancel(database.db, tables, { id, queue: 'default', reason: 'why', channel: undefined });
    go.open();
    await cancelled;
    const record = await find();
    expect(record?.state).toBe('cancelled');
    expect(record?.errors.map(({ message }) => message)).toEqual(fails ? ['by itself', 'why'] : ['why']);
    expect(events).toEqual(fails ? ['failed', 'cancelled'] : ['cancelled']);
  });

  test.each([
    ['its last attempt fails', 1, new Error('by itself')],
    ['it throws a NonRetryableError', 3, new NonRetryableError('by itself')],
  ])('ends the job as cancelled, and not as discarded, when %s', async (_, maxAttempts, error) => {
    const go = gate();
    const options = { job: defineJob('once', { maxAttempts }) };
    const { id, worker, find, events } = await running(async () => {
      await go.opened;
      throw error;
    }, options);
    const over = Promise.race([nextEvent(worker, 'cancelled'), nextEvent(worker, 'discarded')]);
    await requestCancel(database.db, tables, { id, queue: 'default', reason: 'why', channel: undefined });
    go.open();
    await over;
    const record = await find();
    expect(record?.state).toBe('cancelled');
    expect(record?.errors).toMatchObject([{ attempt: 1, name: 'Cancelled', message: 'why' }]);
    expect(events).toEqual(['failed', 'cancelled']);
  });

  test('and which dies: whoever claims the job next ends it, and does not run it', async () => {
    const { id } = await queue.enqueue(database.db, work);
    await database.db
      .update(queueJobs)
      .set({ workerId: 424_242, attempt: 1, fence: 1, claimedAt: new Date() });
    expect(await queue.cancel(database.db, id, 'why')).toEqual({ cancelled: 'requested' });
    // There is no such worker, as if it had been declared gone.
    await removeWorker(database.db, tables, 424_242);
    let runs = 0;
    const worker = createWorker(database.db, { queue, handlers: [handle(work, () => void runs++)] });
    onTestFinished(() => worker.stop());
    const cancelled = nextEvent(worker, 'cancelled');
    await worker.start();
    expect((await cancelled)[0]).toMatchObject({ reason: 'why', job: { id } });
    expect(runs).toBe(0);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'cancelled' });
  });

  test('and which dies: runNext ends it, and does not run it either', async () => {
    const { id } = await queue.enqueue(database.db, work);
    await database.db
      .update(queueJobs)
      .set({ workerId: 424_242, attempt: 1, fence: 1, claimedAt: new Date() });
    await queue.cancel(database.db, id, 'why');
    let runs = 0;
    const ran = await runNext(database.db, { queue, handlers: [handle(work, () => void runs++)] });
    expect(ran).toMatchObject({ outcome: 'cancelled', job: { id } });
    expect(runs).toBe(0);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'cancelled' });
  });
});

describe('a running job that is cancelled by force', () => {
  test.each([true, false])(
    'is finished at once; its handler is told at once, its slot is free, and nothing that it does counts; listening: %s',
    async (listen) => {
      const go = gate();
      let late: unknown;
      let ended = false;
      let reason: unknown;
      const told = gate();
      const { db, looks } = countLooks(database.url);
      const { id, worker, find, events } = await running(
        async ({ signal, complete }) => {
          void aborted(signal).then((why) => {
            reason = why;
            told.open();
          });
          // It ignores its signal.
          await go.opened;
          late = await database.db.transaction((tx) => complete(tx)).catch((error: unknown) => error);
          ended = true;
        },
        { listen, db },
      );
      const lost = nextEvent(worker, 'lost');
      expect(await queue.cancel(database.db, id, { force: true, reason: 'at once' })).toEqual({
        cancelled: true,
      });
      await expectHeardAtOnce(told.opened, { listen, looks });
      const result = await find();
      expect(result).toMatchObject({
        state: 'cancelled',
        attempt: 1,
        errors: [{ attempt: 1, name: 'Cancelled', message: 'at once' }],
      });
      await lost;
      expect(reason).toBeInstanceOf(JobCancelledError);
      expect(reason).toMatchObject({ reason: 'at once' });
      go.open();
      await until(() => ended);
      expect(late).toBeInstanceOf(LeaseLostError);
      expect(await find()).toEqual(result);
      expect(events).toEqual(['lost']);
    },
  );

  test('is lost, and not completed, for a handler whose complete(tx) has rolled back', async () => {
    const go = gate();
    const { id, worker, find, events } = await running(async ({ complete }) => {
      await database.db
        .transaction(async (tx) => {
          await complete(tx);
          throw new Error('rolled back');
        })
        .catch(() => {});
      await go.opened;
    });
    const over = Promise.race([nextEvent(worker, 'lost'), nextEvent(worker, 'completed')]);
    // A row that the transaction still locks is left alone; nobody is notified.
    const silent = createQueue({ wakeUps: false });
    await until(async () => (await silent.cancel(database.db, id, { force: true })).cancelled === true);
    go.open();
    await over;
    expect(events).toEqual(['lost']);
    expect(await find()).toMatchObject({ state: 'cancelled' });
  });

  test('rolls back the writes of a complete(tx) that comes a moment later', async () => {
    const go = gate();
    let late: unknown;
    const { id, worker } = await running(async ({ complete }) => {
      await go.opened;
      late = await database.db
        .transaction(async (tx) => {
          await queue.enqueue(tx, work, undefined, { delayMs: 3_600_000 });
          await complete(tx);
        })
        .catch((error: unknown) => error);
    });
    const lost = nextEvent(worker, 'lost');
    // Nobody is notified: the handler cannot have heard.
    await createQueue({ wakeUps: false }).cancel(database.db, id, { force: true });
    go.open();
    await lost;
    await until(() => late !== undefined);
    expect(late).toBeInstanceOf(LeaseLostError);
    expect(await database.db.$count(queueJobs)).toBe(0);
  });
});

test('of many jobs that end while they are cancelled, each ends once, and as its canceller was told', async () => {
  const worker: Worker = createWorker(database.db, {
    queue,
    queues: { default: { concurrency: 20 } },
    handlers: [
      handle(work, async ({ job, signal }) => {
        await new Promise((resolve) => setTimeout(resolve, job.id % 7));
        if (job.id % 3 === 0) signal.throwIfAborted();
        if (job.id % 5 === 0) throw new Error('by itself');
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  const ends = new Map<number, string[]>();
  for (const event of ['completed', 'discarded', 'cancelled', 'lost'] as const)
    worker.on(event, ({ job }) => ends.set(job.id, [...(ends.get(job.id) ?? []), event]));
  await worker.start();
  const answers = new Map<number, unknown>();
  const jobs = await queue.enqueueMany(
    database.db,
    work,
    Array.from({ length: 200 }, () => ({})),
  );
  await Promise.all(
    jobs.map(async ({ id }) => {
      answers.set(id, await queue.cancel(database.db, id, { force: id % 2 === 0 }));
    }),
  );
  // What failed by itself, and was not to end, waits for an hour.
  await until(async () => {
    const rows = await database.db.select().from(queueJobs);
    return rows.every(({ workerId, cancelReason }) => workerId === null && cancelReason === null);
  });
  await worker.stop();
  for (const { id } of jobs) {
    const record = await queue.find(database.db, id);
    const answer = answers.get(id) as { cancelled: boolean | 'requested' };
    if (answer.cancelled === true) expect(record?.state).toBe('cancelled');
    else if (answer.cancelled === 'requested') expect(['cancelled', 'completed']).toContain(record?.state);
    expect(ends.get(id)?.length ?? 0).toBeLessThanOrEqual(1);
  }
});

test('a worker without running jobs asks for pauses alone, seldom when it listens', async () => {
  const statements: string[] = [];
  const client = postgres(database.url, { max: 4, debug: (_, text) => statements.push(text) });
  const worker = createWorker(drizzle({ client }), { queue, handlers: [handle(work, () => {})] });
  onTestFinished(async () => {
    await worker.stop();
    await client.end();
  });
  const listening = nextEvent(worker, 'listening');
  await worker.start();
  await listening;
  const looks = () => statements.filter((text) => text.includes('queue_pauses'));
  const before = looks().length;
  const startMs = performance.now();
  await until(() => looks().length >= before + 2);
  // Two looks, at least 3.75 seconds apart; one may have been about to come.
  expect(performance.now() - startMs).toBeGreaterThan(3_500);
  expect(looks().slice(before).join()).not.toContain('queue_jobs');
});
