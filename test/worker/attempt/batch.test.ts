import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import {
  BatchError,
  cancel,
  createQueue,
  createWorker,
  defineJob,
  drain,
  fail,
  fixedBackoff,
  handle,
  handleBatch,
  JobCancelledError,
  JobTimeoutError,
  LeaseLostError,
  NonRetryableError,
  runNext,
  snooze,
  type WorkerOptions,
} from 'drizzle-queue';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { HotPolling } from '../../../src/core/worker/claim/hot-polling.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue();
const HOUR_MS = 3_600_000;
const index = defineJob('index', {
  payload: z.object({ n: z.number() }),
  backoff: fixedBackoff(HOUR_MS),
});
const score = defineJob('score', {
  payload: z.object({ n: z.number() }),
  output: z.object({ score: z.number() }),
  backoff: fixedBackoff(HOUR_MS),
});
const plain = defineJob('plain');

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_pauses');
});

const entries = (count: number) => Array.from({ length: count }, (_, n) => ({ payload: { n } }));
const enqueue = async (job: typeof index | typeof score, count: number) =>
  (await queue.enqueueMany(database.db, job as typeof index, entries(count))).map(({ id }) => id);
const numbers = (jobs: readonly { readonly payload: { readonly n: number } }[]) =>
  jobs.map(({ payload }) => payload.n);
const statesOf = async (ids: readonly number[]) =>
  await Promise.all(ids.map(async (id) => (await queue.find(database.db, id))?.state));

/** A worker that is stopped with the test. */
function startWorker(options: Omit<WorkerOptions<typeof database.db>, 'queue'>) {
  const worker = createWorker(database.db, { queue, ...options });
  onTestFinished(() => worker.stop());
  return worker;
}

const drainWith = async (...handlers: Parameters<typeof startWorker>[0]['handlers'][number][]) =>
  await drain(database.db, { queue, handlers, deadlineMs: 20_000 });

describe('jobs gather', () => {
  test('into full batches, whatever is due, in their order', async () => {
    await enqueue(index, 25);
    const calls: number[][] = [];
    const drained = await drainWith(
      handleBatch(index, { maxSize: 10, maxWaitMs: 60_000 }, async (jobs) => {
        calls.push(numbers(jobs));
      }),
    );
    expect(drained).toMatchObject({ completed: 25, empty: true });
    expect(calls.map(({ length }) => length)).toEqual([10, 10, 5]);
    expect(calls.flat()).toEqual(Array.from({ length: 25 }, (_, n) => n));
  });

  test('a drain does not wait for more than is due', async () => {
    await enqueue(index, 3);
    const startMs = performance.now();
    const drained = await drainWith(handleBatch(index, { maxSize: 1_000, maxWaitMs: 60_000 }, () => {}));
    expect(drained).toMatchObject({ completed: 3, empty: true });
    expect(performance.now() - startMs).toBeLessThan(10_000);
  });

  test('across claims, until the first has waited for maxWaitMs', async () => {
    const MAX_WAIT_MS = 3_000;
    const sizes: number[] = [];
    const began: number[] = [];
    const worker = startWorker({
      handlers: [
        handleBatch(index, { maxSize: 1_000, maxWaitMs: MAX_WAIT_MS }, (jobs) => {
          sizes.push(jobs.length);
        }),
      ],
    });
    let claims = 0;
    worker.on('claimed', () => claims++).on('began', ({ job }) => began.push(job.id));
    await worker.start();
    /** Answers how many are held, and have not begun. */
    const claimFour = async (): Promise<number> => {
      claims = 0;
      for (let n = 0; n < 4; n++) {
        await queue.enqueue(database.db, index, { n });
        await until(() => claims > n, { intervalMs: 1 });
      }
      const [{ held = 0 } = {}] = await database.client<{ held: number }[]>`
        select count(*)::int as held from queue_jobs where worker_id is not null`;
      return held;
    };
    let startMs = performance.now();
    let held = await claimFour();
    while (performance.now() - startMs >= MAX_WAIT_MS) {
      // Four claims and a question did not fit in, on a busy machine: once more.
      await until(async () => (await database.client`select from queue_jobs`).length === 0);
      for (const list of [sizes, began]) list.length = 0;
      startMs = performance.now();
      held = await claimFour();
    }
    expect({ held, began }).toEqual({ held: 4, began: [] });
    await until(() => sizes.length > 0);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(2_995);
    expect(sizes).toEqual([4]);
  });

  test('a full batch begins at once', async () => {
    const startMs = performance.now();
    const sizes: number[] = [];
    const worker = startWorker({
      handlers: [
        handleBatch(index, { maxSize: 5, maxWaitMs: 60_000 }, (jobs) => {
          sizes.push(jobs.length);
        }),
      ],
    });
    await worker.start();
    const claimed = nextEvent(worker, 'claimed');
    await enqueue(index, 3);
    await claimed;
    await enqueue(index, 2);
    await until(() => sizes.length > 0, { intervalMs: 1 });
    expect(sizes).toEqual([5]);
    expect(performance.now() - startMs).toBeLessThan(20_000);
  });

  test('with maxWaitMs 0 a batch is what one claim has brought', async () => {
    await enqueue(index, 7);
    const sizes: number[] = [];
    const worker = startWorker({
      handlers: [
        handleBatch(index, { maxSize: 50, maxWaitMs: 0 }, (jobs) => {
          sizes.push(jobs.length);
        }),
      ],
    });
    await worker.start();
    await until(() => sizes.length > 0);
    expect(sizes).toEqual([7]);
  });

  test('a batch takes one slot, and no more run than there are slots', async () => {
    await enqueue(index, 40);
    let running = 0;
    let most = 0;
    const worker = startWorker({
      queues: { default: { concurrency: 2 } },
      handlers: [
        handleBatch(index, { maxSize: 5, maxWaitMs: 5 }, async () => {
          most = Math.max(most, ++running);
          await delay(20);
          running--;
        }),
      ],
    });
    let completed = 0;
    worker.on('completed', () => completed++);
    await worker.start();
    await until(() => completed === 40);
    expect(most).toBe(2);
  });

  test('beside jobs of other kinds, which wait for none of them', async () => {
    const calls: string[] = [];
    const worker = startWorker({
      queues: { default: { concurrency: 1 } },
      handlers: [
        handleBatch(index, { maxSize: 30, maxWaitMs: 60_000 }, (jobs) => {
          calls.push(`batch of ${jobs.length}`);
        }),
        handle(plain, () => {
          calls.push('plain');
        }),
      ],
    });
    await worker.start();
    const claimed = nextEvent(worker, 'claimed');
    await enqueue(index, 20);
    await claimed;
    await queue.enqueueMany(
      database.db,
      plain,
      Array.from({ length: 5 }, () => ({})),
    );
    await until(() => calls.length === 5);
    await enqueue(index, 10);
    await until(() => calls.length === 6);
    expect(calls).toEqual([...Array.from({ length: 5 }, () => 'plain'), 'batch of 30']);
  });

  test('two kinds with one slot both get full batches', async () => {
    await enqueue(index, 60);
    await enqueue(score, 60);
    // Of both in turns.
    await database.client`
      update queue_jobs set run_at =
        to_timestamp(extract(epoch from now())::float8 - 60 + (payload ->> 'n')::float8 / 1000)`;
    const sizes: string[] = [];
    const worker = startWorker({
      queues: { default: { concurrency: 1 } },
      handlers: [
        handleBatch(index, { maxSize: 20, maxWaitMs: 60_000 }, (jobs) => {
          sizes.push(`index ${jobs.length}`);
        }),
        handleBatch(score, { maxSize: 20, maxWaitMs: 60_000 }, (jobs) => {
          sizes.push(`score ${jobs.length}`);
          return jobs.map(() => ({ score: 1 }));
        }),
      ],
    });
    await worker.start();
    await until(() => sizes.length === 6);
    expect(sizes.sort()).toEqual([
      ...Array.from({ length: 3 }, () => 'index 20'),
      ...Array.from({ length: 3 }, () => 'score 20'),
    ]);
  });

  test('each job is done by one of two workers', async () => {
    const ids = await enqueue(index, 2_000);
    const done: number[] = [];
    const drains = Array.from({ length: 2 }, () =>
      drainWith(
        handleBatch(index, { maxSize: 50, maxWaitMs: 5 }, async (jobs) => {
          await delay(1);
          done.push(...jobs.map(({ job }) => job.id));
        }),
      ),
    );
    const drained = await Promise.all(drains);
    expect(drained.reduce((sum, { completed }) => sum + completed, 0)).toBe(2_000);
    expect(done.toSorted((a, b) => a - b)).toEqual(ids);
  });

  test('claimed ahead without a slot for long, they are given back', async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let calls = 0;
    const worker = startWorker({
      queues: { default: { concurrency: 1 } },
      handlers: [
        handleBatch(index, { maxSize: 2, maxWaitMs: 1 }, async () => {
          // So quick that more is claimed ahead; then one takes long.
          if (++calls === 30) await gate;
        }),
      ],
    });
    await enqueue(index, 200);
    await worker.start();
    await until(() => calls === 30);
    await until(async () => {
      const [{ held = 0 } = {}] = await database.client<{ held: number }[]>`
        select count(*)::int as held from queue_jobs where worker_id is not null`;
      return held === 2;
    });
    release();
    await until(
      async () => (await queue.list(database.db, { job: index, state: 'completed' })).jobs.length > 0,
    );
  });
});

describe('each job is settled by itself', () => {
  test('with nothing returned, all are completed', async () => {
    const ids = await enqueue(index, 3);
    await drainWith(handleBatch(index, {}, () => {}));
    expect(await statesOf(ids)).toEqual(['completed', 'completed', 'completed']);
  });

  test('an output, fail, snooze or cancel for each', async () => {
    const ids = await enqueue(score, 5);
    const worker = startWorker({
      handlers: [
        handleBatch(score, { maxSize: 5, maxWaitMs: 60_000 }, async (jobs) =>
          jobs.map(({ payload: { n } }) => {
            if (n === 1) return fail(new Error('one'));
            if (n === 2) return snooze(HOUR_MS);
            if (n === 3) return cancel('three');
            if (n === 4) return fail(new NonRetryableError('four'));
            return { score: n };
          }),
        ),
      ],
    });
    const told: string[] = [];
    for (const event of ['completed', 'failed', 'snoozed', 'cancelled', 'discarded'] as const) {
      worker.on(event, ({ job }) => told.push(`${event} ${ids.indexOf(job.id)}`));
    }
    await worker.start();
    await until(() => told.length === 6);
    expect(told.sort()).toEqual([
      'cancelled 3',
      'completed 0',
      'discarded 4',
      'failed 1',
      'failed 4',
      'snoozed 2',
    ]);
    const found = await Promise.all(ids.map((id) => queue.find(database.db, score, id)));
    expect(found).toMatchObject([
      { state: 'completed', output: { score: 0 }, attempt: 1 },
      { state: 'scheduled', attempt: 1, errors: [{ attempt: 1, message: 'one' }] },
      { state: 'scheduled', attempt: 0, errors: [] },
      { state: 'cancelled', errors: [{ message: 'three' }] },
      { state: 'discarded', errors: [{ message: 'four' }] },
    ]);
  });

  test('an output that the schema refuses fails its own job only', async () => {
    const ids = await enqueue(score, 3);
    await drainWith(
      handleBatch(score, {}, (jobs) =>
        jobs.map(({ payload: { n } }) => ({ score: n === 1 ? ('x' as unknown as number) : n })),
      ),
    );
    expect(await statesOf(ids)).toEqual(['completed', 'scheduled', 'completed']);
    expect(await queue.find(database.db, ids[1] ?? 0)).toMatchObject({
      errors: [{ name: 'InvalidOutputError' }],
    });
  });

  test('a throw fails all, each with its own backoff and attempts', async () => {
    const asked: unknown[] = [];
    const retried = defineJob('retried', {
      payload: z.object({ n: z.number() }),
      maxAttempts: 3,
      backoff: (attempt, error) => {
        asked.push([attempt, (error as Error).message]);
        return HOUR_MS;
      },
    });
    const ids = (await queue.enqueueMany(database.db, retried, entries(3))).map(({ id }) => id);
    await database.client`update queue_jobs set attempt = 2, errors = '[{"attempt": 2, "name": "E", "message": "m", "at": "2020-01-01T00:00:00Z"}]'
      where id = ${ids[2] ?? 0}`;
    await drainWith(
      handleBatch(retried, {}, async () => {
        throw new Error('all');
      }),
    );
    expect(await statesOf(ids)).toEqual(['scheduled', 'scheduled', 'discarded']);
    expect(asked).toEqual([
      [1, 'all'],
      [1, 'all'],
    ]);
  });

  test('a BatchError fails those that it names; the others are completed', async () => {
    const ids = await enqueue(index, 4);
    await drainWith(
      handleBatch(index, {}, async (jobs) => {
        const failures = new Map<number, unknown>();
        for (const { job, payload } of jobs) {
          if (payload.n === 1) failures.set(job.id, new Error('one'));
          if (payload.n === 2) failures.set(job.id, new NonRetryableError('two'));
        }
        throw new BatchError(failures);
      }),
    );
    expect(await statesOf(ids)).toEqual(['completed', 'scheduled', 'discarded', 'completed']);
    expect(await queue.find(database.db, ids[1] ?? 0)).toMatchObject({ errors: [{ message: 'one' }] });
  });

  test('a BatchError that names a job of no batch fails all of them', async () => {
    const ids = await enqueue(index, 2);
    await drainWith(
      handleBatch(index, {}, async ([first]) => {
        throw new BatchError(
          new Map([
            [first?.job.id ?? 0, new Error('one')],
            [999_999_999, new Error('unknown')],
          ]),
        );
      }),
    );
    expect(await statesOf(ids)).toEqual(['scheduled', 'scheduled']);
    expect(await queue.find(database.db, ids[1] ?? 0)).toMatchObject({ errors: [{ name: 'BatchError' }] });
  });

  test.each([
    ['too few', (): unknown[] => [1], 'returned 1 entries; it takes one entry for each of its 3 jobs'],
    ['too many', (): unknown[] => [1, 2, 3, 4], 'returned 4 entries'],
    ['something else', () => ({ rowCount: 3 }) as unknown as unknown[], 'returned a value of type object'],
    ['a text', () => 'an output' as unknown as unknown[], 'returned a value of type string; it'],
    ['null', () => null as unknown as unknown[], 'returned null'],
  ])('%s results fail all, and say so', async (_, results, message) => {
    const ids = await enqueue(index, 3);
    await drainWith(handleBatch(index, {}, async () => results()));
    for (const id of ids) {
      expect(await queue.find(database.db, id)).toMatchObject({
        state: 'scheduled',
        errors: [{ name: 'QueueError', message: expect.stringContaining(message) }],
      });
    }
  });

  test('a throw of whatever can be thrown settles them', async () => {
    const ids = await enqueue(index, 2);
    const hostile = new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new Error('no');
        },
        get() {
          throw new Error('no');
        },
      },
    );
    await drainWith(
      handleBatch(index, {}, () => {
        throw hostile;
      }),
    );
    expect(await statesOf(ids)).toEqual(['scheduled', 'scheduled']);
  });

  test('an invalid payload fails alone, and is not in the batch', async () => {
    const ids = await enqueue(index, 3);
    await database.client`update queue_jobs set payload = '{"n": "x"}' where id = ${ids[1] ?? 0}`;
    const seen: number[][] = [];
    await drainWith(
      handleBatch(index, {}, (jobs) => {
        seen.push(numbers(jobs));
      }),
    );
    expect(seen).toEqual([[0, 2]]);
    expect(await statesOf(ids)).toEqual(['completed', 'scheduled', 'completed']);
    expect(await queue.find(database.db, ids[1] ?? 0)).toMatchObject({
      errors: [{ name: 'InvalidPayloadError' }],
    });
  });

  test('without a valid payload the handler is not called', async () => {
    const ids = await enqueue(index, 2);
    await database.client`update queue_jobs set payload = '5'`;
    let called = false;
    await drainWith(
      handleBatch(index, {}, () => {
        called = true;
      }),
    );
    expect(called).toBe(false);
    expect(await statesOf(ids)).toEqual(['scheduled', 'scheduled']);
  });

  test('a handler of single jobs may return fail, too', async () => {
    const { id } = await queue.enqueue(database.db, index, { n: 1 });
    await drainWith(handle(index, () => fail(new Error('returned'))));
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'scheduled',
      errors: [{ message: 'returned' }],
    });
  });
});

describe('a job is told by its own signal', () => {
  /** A batch handler that waits, for as long as `until` says, and what it was told. */
  function waiting(job = index) {
    const seen: { jobs: { n: number; signal: AbortSignal }[]; signal?: AbortSignal } = { jobs: [] };
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const handler = handleBatch(job, { maxSize: 3, maxWaitMs: 60_000 }, async (jobs, { signal }) => {
      seen.jobs = jobs.map((one) => ({ n: one.payload.n, signal: one.signal }));
      seen.signal = signal;
      await gate;
    });
    return { seen, handler, release: () => release() };
  }

  test('of a cancel, which leaves the others alone', async () => {
    const ids = await enqueue(index, 3);
    const { seen, handler, release } = waiting();
    const worker = startWorker({ handlers: [handler] });
    await worker.start();
    await until(() => seen.jobs.length === 3);
    await queue.cancel(database.db, ids[1] ?? 0, { reason: 'not any more', force: true });
    await until(() => seen.jobs[1]?.signal.aborted);
    expect(seen.jobs[1]?.signal.reason).toBeInstanceOf(JobCancelledError);
    expect(seen.jobs.map(({ signal }) => signal.aborted)).toEqual([false, true, false]);
    expect(seen.signal?.aborted).toBe(false);
    release();
    await until(async () => !(await statesOf(ids)).includes('running'));
    expect(await statesOf(ids)).toEqual(['completed', 'cancelled', 'completed']);
  });

  test('of a request to end: if it fails then, it is cancelled', async () => {
    const ids = await enqueue(index, 2);
    const worker = startWorker({
      handlers: [
        handleBatch(index, { maxSize: 2, maxWaitMs: 60_000 }, async (jobs) => {
          await until(() => jobs.some(({ signal }) => signal.aborted));
          return jobs.map(({ signal }) => (signal.aborted ? fail(signal.reason) : 'done'));
        }),
      ],
    });
    const began = nextEvent(worker, 'began');
    await worker.start();
    await began;
    await queue.cancel(database.db, ids[0] ?? 0, { reason: 'stop it' });
    await until(async () => !(await statesOf(ids)).includes('running'));
    expect(await statesOf(ids)).toEqual(['cancelled', 'completed']);
  });

  test('of all cancels: then the batch is over, too', async () => {
    const ids = await enqueue(index, 3);
    const { seen, handler, release } = waiting();
    const worker = startWorker({ handlers: [handler] });
    await worker.start();
    await until(() => seen.jobs.length === 3);
    for (const id of ids) await queue.cancel(database.db, id, { reason: 'all' });
    await until(() => seen.signal?.aborted);
    expect(seen.signal?.reason).toBeInstanceOf(JobCancelledError);
    release();
    await until(async () => !(await statesOf(ids)).includes('running'));
    // It has done its work all the same.
    expect(await statesOf(ids)).toEqual(['completed', 'completed', 'completed']);
  });

  test('of a loss: what the handler says of it changes nothing', async () => {
    const ids = await enqueue(index, 3);
    const { seen, handler, release } = waiting();
    const worker = startWorker({ handlers: [handler] });
    const lost = nextEvent(worker, 'lost');
    await worker.start();
    await until(() => seen.jobs.length === 3);
    // Another worker, which lives, claims it: as after a declared death.
    await database.client`
      insert into queue_workers (id, name, queues) overriding system value values (424242, 'other', '[]')`;
    await database.client`update queue_jobs set fence = fence + 1, worker_id = 424242 where id = ${ids[0] ?? 0}`;
    // Its look every second, or the next claim's, finds it.
    await until(() => seen.jobs[0]?.signal.aborted);
    expect(seen.jobs[0]?.signal.reason).toBeInstanceOf(LeaseLostError);
    release();
    expect((await lost)[0].job.id).toBe(ids[0]);
    await until(async () => (await statesOf(ids.slice(1))).every((state) => state === 'completed'));
    expect(await statesOf(ids)).toEqual(['running', 'completed', 'completed']);
  });

  test('of the timeout, which ends the whole batch and frees its slot', async () => {
    const slow = defineJob('slow', {
      payload: z.object({ n: z.number() }),
      timeoutMs: 100,
      backoff: fixedBackoff(HOUR_MS),
    });
    await queue.enqueueMany(database.db, slow, entries(3));
    const { seen, handler, release } = waiting(slow as unknown as typeof index);
    onTestFinished(release);
    const worker = startWorker({
      queues: { default: { concurrency: 1 } },
      handlers: [handler, handle(plain, () => {})],
    });
    const errors: unknown[] = [];
    worker.on('failed', ({ error }) => errors.push(error));
    await worker.start();
    await until(() => errors.length === 3);
    for (const error of errors) expect(error).toBeInstanceOf(JobTimeoutError);
    expect(seen.signal?.reason).toBeInstanceOf(JobTimeoutError);
    for (const { signal } of seen.jobs) expect(signal.reason).toBeInstanceOf(JobTimeoutError);
    // The handler goes on, and its slot is free.
    const completed = nextEvent(worker, 'completed');
    await queue.enqueue(database.db, plain);
    expect((await completed)[0].job.kind).toBe('plain');
  });

  test('of the stop, which gives all of them back', async () => {
    const ids = await enqueue(index, 3);
    const worker = startWorker({
      shutdownTimeoutMs: 0,
      handlers: [
        handleBatch(index, { maxSize: 3, maxWaitMs: 60_000 }, async (_, { signal }) => {
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        }),
      ],
    });
    const given: boolean[] = [];
    worker.on('interrupted', ({ began }) => given.push(began));
    const began = nextEvent(worker, 'began');
    await worker.start();
    await began;
    await worker.stop();
    expect(given).toEqual([true, true, true]);
    expect(await statesOf(ids)).toEqual(['due', 'due', 'due']);
    const [{ attempts = -1 } = {}] = await database.client<{ attempts: number }[]>`
      select sum(attempt)::int as attempts from queue_jobs`;
    expect(attempts).toBe(0);
  });
});

describe('while they gather', () => {
  /** A worker whose batch of three jobs waits for more. */
  async function gatheringWorker(ids: readonly number[]) {
    let calls = 0;
    const worker = startWorker({
      handlers: [
        handleBatch(index, { maxSize: 100, maxWaitMs: 60_000 }, () => {
          calls++;
        }),
      ],
    });
    await worker.start();
    await until(async () => (await statesOf(ids)).every((state) => state === 'running'));
    return { worker, calls: () => calls };
  }

  test('a stop gives them back, their attempts not spent', async () => {
    const ids = await enqueue(index, 3);
    const { worker, calls } = await gatheringWorker(ids);
    const given: boolean[] = [];
    worker.on('interrupted', ({ began }) => given.push(began));
    await worker.stop();
    // A claim that was under way may take them again, and gives them back, too.
    expect(given.length).toBeGreaterThanOrEqual(3);
    expect({ began: given.includes(true), calls: calls() }).toEqual({ began: false, calls: 0 });
    expect(await statesOf(ids)).toEqual(['due', 'due', 'due']);
    const [{ attempts = -1 } = {}] = await database.client<{ attempts: number }[]>`
      select sum(attempt)::int as attempts from queue_jobs`;
    expect(attempts).toBe(0);
  });

  test('a pause gives them back', async () => {
    const ids = await enqueue(index, 3);
    const { calls } = await gatheringWorker(ids);
    await queue.pause(database.db, 'default');
    await until(async () => (await statesOf(ids)).every((state) => state === 'due'));
    expect(calls()).toBe(0);
  });

  test('a cancel ends one at once, and the others go on waiting', async () => {
    const ids = await enqueue(index, 3);
    const { calls } = await gatheringWorker(ids);
    await queue.cancel(database.db, ids[1] ?? 0, { reason: 'not that one' });
    await until(async () => (await statesOf(ids))[1] === 'cancelled');
    expect(await statesOf(ids)).toEqual(['running', 'cancelled', 'running']);
    expect(calls()).toBe(0);
  });

  test('one that is lost is not in the batch', async () => {
    const ids = await enqueue(index, 3);
    const { worker } = await gatheringWorker(ids);
    await database.client`
      insert into queue_workers (id, name, queues) overriding system value values (424242, 'other', '[]')`;
    await database.client`update queue_jobs set fence = fence + 1, worker_id = 424242 where id = ${ids[0] ?? 0}`;
    // A look for requests, which a cancel asks for, finds that out.
    await queue.cancel(database.db, ids[1] ?? 0);
    await until(async () => (await statesOf(ids))[1] === 'cancelled');
    await worker.stop();
    expect(await statesOf(ids)).toEqual(['running', 'cancelled', 'due']);
  });
});

describe('last attempts', () => {
  const once = defineJob('once', { payload: z.object({ n: z.number() }), maxAttempts: 1 });

  test('begin when their batch does, in one statement, and not while it gathers', async () => {
    const ids = (await queue.enqueueMany(database.db, once, entries(3))).map(({ id }) => id);
    const begun = async () => {
      const rows = await database.client<{ begun: boolean }[]>`
        select claimed_at is not null as begun from queue_jobs order by id`;
      return rows.map((row) => row.begun);
    };
    const during: boolean[][] = [];
    const worker = startWorker({
      handlers: [
        handleBatch(once, { maxSize: 4, maxWaitMs: 60_000 }, async () => {
          during.push(await begun());
        }),
      ],
    });
    await worker.start();
    await until(async () => (await statesOf(ids)).every((state) => state === 'running'));
    expect(await begun()).toEqual([false, false, false]);
    await queue.enqueue(database.db, once, { n: 3 });
    await until(() => during.length === 1);
    expect(during).toEqual([[true, true, true, true]]);
    await until(async () => (await statesOf(ids)).every((state) => state === 'completed'));
  });

  test('one that was lost before its batch begins does not run', async () => {
    const ids = (await queue.enqueueMany(database.db, once, entries(2))).map(({ id }) => id);
    const seen: number[][] = [];
    const worker = startWorker({
      handlers: [
        handleBatch(once, { maxSize: 3, maxWaitMs: 10_000 }, (jobs) => {
          seen.push(numbers(jobs));
        }),
      ],
    });
    const lost: number[] = [];
    worker.on('lost', ({ job }) => lost.push(job.id));
    await worker.start();
    await until(async () => (await statesOf(ids)).every((state) => state === 'running'));
    await database.client`
      insert into queue_workers (id, name, queues) overriding system value values (424242, 'other', '[]')`;
    await database.client`update queue_jobs set fence = fence + 1, worker_id = 424242 where id = ${ids[0] ?? 0}`;
    const startMs = performance.now();
    await queue.enqueue(database.db, once, { n: 2 });
    await until(() => seen.length === 1);
    expect(seen).toEqual([[1, 2]]);
    // The worker may look, and find it lost, before the third comes: then the batch does not fill, and nothing that has
    // not begun is told of.
    expect(lost).toEqual(performance.now() - startMs < 5_000 ? ids.slice(0, 1) : []);
  });

  test('a row that the database refuses to begin keeps no other from it', async () => {
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$
        begin
          if new.payload ->> 'n' = '2' and new.claimed_at is not null and old.claimed_at is null then
            raise exception 'not this one';
          end if;
          return new;
        end $$`);
    await database.client`create trigger refuse before update on queue_jobs for each row execute function refuse()`;
    onTestFinished(async () => {
      await database.client`drop trigger refuse on queue_jobs`;
      await database.client`drop function refuse()`;
    });
    const ids = (await queue.enqueueMany(database.db, once, entries(5))).map(({ id }) => id);
    const seen: number[][] = [];
    const worker = startWorker({
      handlers: [
        handleBatch(once, { maxSize: 5, maxWaitMs: 60_000 }, (jobs) => {
          seen.push(numbers(jobs));
        }),
      ],
    });
    const errors: unknown[] = [];
    worker.on('error', ({ error }) => errors.push(error));
    await worker.start();
    await until(async () => (await statesOf(ids)).every((state) => state !== 'running' && state !== 'due'));
    expect(seen).toEqual([[0, 1, 3, 4]]);
    expect(await statesOf(ids)).toEqual(['completed', 'completed', 'scheduled', 'completed', 'completed']);
    expect(errors).toHaveLength(1);
  });

  test('a row that is locked is given back, and keeps no other from beginning', async () => {
    const ids = (await queue.enqueueMany(database.db, once, entries(2))).map(({ id }) => id);
    const seen: number[][] = [];
    const worker = startWorker({
      handlers: [
        handleBatch(once, { maxSize: 3, maxWaitMs: 60_000 }, (jobs) => {
          seen.push(numbers(jobs));
        }),
      ],
    });
    await worker.start();
    await until(async () => (await statesOf(ids)).every((state) => state === 'running'));
    await database.client.begin(async (sql) => {
      await sql`select from queue_jobs where queue = 'default' and id = ${ids[0] ?? 0} for update`;
      await queue.enqueue(database.db, once, { n: 2 });
      await until(() => seen.length === 1);
    });
    expect(seen).toEqual([[1, 2]]);
  });
});

describe('runNext', () => {
  test('runs a batch of one', async () => {
    const { id } = await queue.enqueue(database.db, score, { n: 4 });
    const handlers = [
      handleBatch(score, { maxSize: 9 }, (jobs) => jobs.map(({ payload: { n } }) => ({ score: n }))),
    ];
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
    expect(await queue.find(database.db, score, id)).toMatchObject({
      state: 'completed',
      output: { score: 4 },
    });
  });

  test('what it writes with its db is undone when the job fails, and refused once it is over', async () => {
    await database.client`create table if not exists batch_writes (n int)`;
    const slow = defineJob('left-behind', { timeoutMs: 1_000, backoff: fixedBackoff(HOUR_MS) });
    await queue.enqueue(database.db, slow);
    let refusal: unknown;
    const handler = handleBatch(slow, {}, async (_, { db, signal }) => {
      await db.execute(sql`insert into batch_writes values (1)`);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await delay(100);
      refusal = await Promise.resolve(db.execute(sql`insert into batch_writes values (2)`)).catch(
        (error) => error,
      );
    });
    expect(await runNext(database.db, { queue, handlers: [handler] })).toMatchObject({ outcome: 'failed' });
    await until(() => refusal);
    expect(refusal).toBeInstanceOf(LeaseLostError);
    expect(await database.client`select n from batch_writes`).toEqual([]);
  });
});

test('progress is each job’s own', async () => {
  const ids = await enqueue(index, 2);
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const worker = startWorker({
    handlers: [
      handleBatch(index, { maxSize: 2, maxWaitMs: 60_000 }, async (jobs) => {
        for (const { job, payload } of jobs) job.progress({ at: payload.n });
        await gate;
      }),
    ],
  });
  await worker.start();
  await until(async () => {
    const found = await Promise.all(ids.map((id) => queue.find(database.db, id)));
    return (
      JSON.stringify(
        found.map((job) => (job !== undefined && 'progress' in job ? job.progress : undefined)),
      ) === '[{"at":0},{"at":1}]'
    );
  });
  release();
});

describe('around.runBatch', () => {
  test('is around the one call, with all its jobs; around.run is not called', async () => {
    const told: unknown[] = [];
    const around = createQueue({
      around: {
        run: () => told.push('run'),
        runBatch: async ({ jobs, signal }, next) => {
          told.push([jobs.map(({ job, payload }) => [job.kind, payload]), signal.aborted, await next()]);
        },
      },
    });
    await enqueue(index, 2);
    const handlers = [handleBatch(index, {}, (jobs) => jobs.map(({ payload: { n } }) => n))];
    await drain(database.db, { queue: around, handlers, deadlineMs: 10_000 });
    expect(told).toEqual([
      [
        [
          ['index', { n: 0 }],
          ['index', { n: 1 }],
        ],
        false,
        [0, 1],
      ],
    ]);
  });

  test('what it throws fails all, and tells the handler that it leaves behind', async () => {
    const signals: AbortSignal[] = [];
    const around = createQueue({
      around: {
        runBatch: async (_, next) => {
          void next();
          await delay(20);
          throw new Error('around');
        },
      },
    });
    const ids = await enqueue(index, 2);
    const handlers = [
      handleBatch(index, {}, async (jobs, { signal }) => {
        signals.push(signal, ...jobs.map((job) => job.signal));
        await until(() => signal.aborted);
      }),
    ];
    await drain(database.db, { queue: around, handlers, deadlineMs: 10_000 });
    expect(await statesOf(ids)).toEqual(['scheduled', 'scheduled']);
    expect(await queue.find(database.db, ids[0] ?? 0)).toMatchObject({ errors: [{ message: 'around' }] });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
  });

  test('a queue with around.run alone has no batch handlers', () => {
    const around = createQueue({ around: { run: (_, next) => next() } });
    const handlers = [handleBatch(index, {}, () => {})];
    expect(() => createWorker(database.db, { queue: around, handlers })).toThrow(
      /batch handler of 'index' would run outside of the queue's around\.run/,
    );
    const both = createQueue({ around: { run: (_, next) => next(), runBatch: (_, next) => next() } });
    expect(() => createWorker(database.db, { queue: both, handlers })).not.toThrow();
  });
});

test('options outside their ranges are refused', () => {
  const run = () => {};
  for (const maxSize of [0, 1_001, 1.5, Number.NaN]) {
    expect(() => handleBatch(index, { maxSize }, run)).toThrow(/handleBatch\('index'\): maxSize must be/);
  }
  for (const maxWaitMs of [-1, 60_001, Number.NaN]) {
    expect(() => handleBatch(index, { maxWaitMs }, run)).toThrow(/handleBatch\('index'\): maxWaitMs must be/);
  }
  // @ts-expect-error no options
  expect(() => handleBatch(index, run)).toThrow(TypeError);
  // @ts-expect-error no function
  expect(() => handleBatch(index, {})).toThrow(/takes a function after its options/);
  expect(new BatchError(new Map([[7, new Error('no')]])).message).toBe('1 job of a batch failed: 7');
  expect(() => new BatchError(new Map())).toThrow(TypeError);
});

test('a batch handler made by hand is refused before a job is claimed; a copy of a real one works', async () => {
  const real = handleBatch(index, {}, () => undefined);
  const { job, batch, run } = real;
  const byHand = [{ job, batch, run }];
  const [id] = await enqueue(index, 1);
  const refusal = /must hold what handle and handleBatch return/;
  expect(() => createWorker(database.db, { queue, handlers: byHand })).toThrow(refusal);
  await expect(runNext(database.db, { queue, handlers: byHand })).rejects.toThrow(refusal);
  await expect(drain(database.db, { queue, handlers: byHand, deadlineMs: 1_000 })).rejects.toThrow(refusal);
  expect(await queue.find(database.db, Number(id))).toMatchObject({ state: 'due', attempt: 0 });
  expect(await runNext(database.db, { queue, handlers: [{ ...real }] })).toMatchObject({
    job: { id },
    outcome: 'completed',
  });
});

test('a batch after a death begins when what has waited for the record of another is called', async () => {
  // No further claims, whose answers would begin it.
  const hot = vi.spyOn(HotPolling.prototype, 'gapMs').mockReturnValue(undefined);
  onTestFinished(() => {
    hot.mockRestore();
    atFaultPoints();
  });
  const [recorded, over] = [gate(), gate()];
  let isRecording = false;
  atFaultPoints(async (at) => {
    if (at !== 'begin: written' || isRecording) return;
    isRecording = true;
    await recorded.opened;
  });
  const called: string[] = [];
  const options = { maxSize: 2, maxWaitMs: 60_000 };
  const worker = startWorker({
    handlers: [
      handleBatch(index, options, async () => {
        called.push('index');
        await over.opened;
      }),
      handleBatch(score, options, async (jobs) => {
        called.push('score');
        return jobs.map(() => ({ score: 1 }));
      }),
    ],
  });
  let claimed = 0;
  worker.on('claimed', ({ count }) => {
    claimed += count;
  });
  // The last to be registered is the first to be called.
  onTestFinished(() => over.open());
  onTestFinished(() => recorded.open());
  await enqueue(index, 2);
  await enqueue(score, 1);
  // Those of one are on their last attempt, and are recorded; that of the other follows a death, and is alone.
  await database.client`update queue_jobs set max_attempts = 1 where kind = 'index'`;
  await database.client`update queue_jobs set attempt = 1 where kind = 'score'`;
  await worker.start();
  await until(() => isRecording);
  await until(() => claimed === 3);
  expect(called).toEqual([]);
  recorded.open();
  await until(() => called.length === 2);
  expect(called).toEqual(['index', 'score']);
});
