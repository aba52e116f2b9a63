import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Around,
  createQueue,
  createWorker,
  defineJob,
  type Handler,
  handle,
  handleBatch,
  runNext,
  unvalidated,
} from 'drizzle-queue';
import { drainIn, inTransaction } from 'drizzle-queue/testing';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 6 });
const tenants = new AsyncLocalStorage<string>();
const work = defineJob('work', { payload: unvalidated<string>(), maxAttempts: 1 });
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

/** What each call has found, and then left behind. */
function visit(seen: (string | undefined)[], name: string): void {
  seen.push(tenants.getStore());
  tenants.enterWith(name);
}

const nothing = NAMES.map(() => undefined);

interface Setup {
  readonly around?: Around;
  readonly concurrency?: number;
  readonly job?: typeof work;
}

/** A worker that has ended a job for each name. */
async function workedOn(handlers: readonly Handler<typeof database.db>[], setup: Setup = {}) {
  const { around, concurrency = 1, job = work } = setup;
  const queue = createQueue({ around });
  const worker = createWorker(database.db, { queue, handlers, concurrency });
  onTestFinished(() => worker.stop());
  const found: (string | undefined)[] = [];
  let ended = 0;
  for (const event of ['completed', 'discarded'] as const) {
    worker.on(event, ({ job }) => {
      ended++;
      visit(found, `listener of ${job.payload}`);
    });
  }
  // Some at once, and the others one by one: each way has its own code between two handlers.
  await queue.enqueueMany(
    database.db,
    job,
    NAMES.slice(0, 3).map((payload) => ({ payload })),
  );
  await worker.start();
  await until(() => ended === 3);
  for (const [at, name] of NAMES.slice(3).entries()) {
    await queue.enqueue(database.db, job, name);
    await until(() => ended === 4 + at);
  }
  await worker.stop();
  return found;
}

describe('what one job leaves in AsyncLocalStorage, another does not find', () => {
  test('in handlers that return at once, and in listeners', async () => {
    const seen: (string | undefined)[] = [];
    const found = await workedOn([handle(work, ({ payload }) => visit(seen, payload))]);
    expect(seen).toEqual(nothing);
    expect(found).toEqual(nothing);
  });

  test.each([1, 3])('in handlers that wait, with a concurrency of %i', async (concurrency) => {
    const seen: (string | undefined)[] = [];
    const own: unknown[] = [];
    const found = await workedOn(
      [
        handle(work, async ({ payload, job }) => {
          visit(seen, payload);
          job.progress(payload);
          await delay(5);
          own.push(tenants.getStore() === payload);
          tenants.enterWith(`later ${payload}`);
          await database.client`select 1`;
        }),
      ],
      { concurrency },
    );
    expect(seen).toEqual(nothing);
    expect(own).toEqual(NAMES.map(() => true));
    expect(found).toEqual(nothing);
  });

  test('in around.run, whose handler does', async () => {
    const seen: (string | undefined)[] = [];
    const own: unknown[] = [];
    const run: Around['run'] = async ({ payload }, next) => {
      visit(seen, String(payload));
      await next();
    };
    await workedOn([handle(work, ({ payload }) => void own.push(tenants.getStore() === payload))], {
      around: { run },
    });
    expect(seen).toEqual(nothing);
    expect(own).toEqual(NAMES.map(() => true));
  });

  test('in batch handlers and around.runBatch', async () => {
    const seen: (string | undefined)[] = [];
    const inside: (string | undefined)[] = [];
    const around: Around = {
      runBatch: async ({ jobs }, next) => {
        visit(seen, `batch of ${jobs.map(({ payload }) => payload)}`);
        await next();
      },
    };
    await workedOn(
      [
        handleBatch(work, { maxSize: 1, maxWaitMs: 0 }, ([job]) =>
          visit(inside, `handler of ${job?.payload}`),
        ),
      ],
      { around },
    );
    expect(seen).toEqual(nothing);
    expect(inside).toEqual(NAMES.map((name) => `batch of ${name}`));
  });

  test('in batch handlers without anything around them', async () => {
    const seen: (string | undefined)[] = [];
    await workedOn([handleBatch(work, { maxSize: 2, maxWaitMs: 0 }, () => visit(seen, 'a batch'))]);
    expect(seen.length).toBeGreaterThan(2);
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });

  test('in backoffs', async () => {
    const seen: (string | undefined)[] = [];
    const failing = defineJob('work', {
      payload: unvalidated<string>(),
      maxAttempts: 2,
      backoff: () => {
        visit(seen, 'a backoff');
        return 0;
      },
    });
    const fail = handle(failing, () => {
      throw new Error('no');
    });
    await workedOn([fail], { job: failing });
    expect(seen).toEqual(nothing);
  });

  test('in listeners of signals', async () => {
    const told: (string | undefined)[] = [];
    const failing = defineJob('work', { payload: unvalidated<string>(), maxAttempts: 1, timeoutMs: 5 });
    await workedOn(
      [
        handle(failing, ({ signal }) => {
          signal.addEventListener('abort', () => visit(told, 'a listener'));
          return new Promise(() => undefined);
        }),
      ],
      { job: failing },
    );
    expect(told).toEqual(nothing);
  });

  test('in runNext and drainIn', async () => {
    const queue = createQueue();
    const seen: (string | undefined)[] = [];
    const handlers = [handle(work, ({ payload }) => visit(seen, payload))];
    const mine = async () => {
      await queue.enqueue(database.db, work, 'runNext');
      await runNext(database.db, { queue, handlers });
      expect(tenants.getStore()).toBe('caller');
      await inTransaction(database.db, async (tx) => {
        for (const name of NAMES) await queue.enqueue(tx, work, name);
        await drainIn(tx, { queue, handlers });
      });
    };
    await tenants.run('caller', mine);
    expect(seen).toEqual(['caller', ...NAMES.map(() => 'caller')]);
  });
});

test('handlers and listeners run in the async context in which their worker was created', async () => {
  const queue = createQueue();
  const seen: (string | undefined)[] = [];
  const worker = tenants.run('creator', () =>
    createWorker(database.db, {
      queue,
      handlers: [handle(work, () => void seen.push(tenants.getStore()))],
    }),
  );
  onTestFinished(() => worker.stop());
  worker.on('completed', () => seen.push(tenants.getStore()));
  await queue.enqueue(database.db, work, 'x');
  await tenants.run('starter', () => worker.start());
  await until(() => seen.length === 2);
  expect(seen).toEqual(['creator', 'creator']);
});
