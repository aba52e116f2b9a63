import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  LeaseLostError,
  NonRetryableError,
  runNext,
  snooze,
} from 'drizzle-queue';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { atFaultPoints, type FaultPoint } from '../../src/core/sql/fault-point.ts';
import { claimOf, clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue();
const work = defineJob('work', { queue: 'q', backoff: fixedBackoff(3_600_000) });
const slow = defineJob('slow', { queue: 'q', timeoutMs: 20, backoff: fixedBackoff(3_600_000) });

beforeEach(() => clearTables(database.client));
afterEach(() => atFaultPoints());

/** Does something when an operation passes this point for the first time; answers how often it has passed. */
function once(point: FaultPoint, act: () => Promise<unknown>): { readonly times: number } {
  const passed = { times: 0 };
  atFaultPoints(async (at) => {
    if (at !== point || ++passed.times > 1) return;
    await act();
  });
  return passed;
}

/** Another worker takes the job over; answers its id. */
async function takeOver(kind: string): Promise<number> {
  await database.client`delete from queue_workers`;
  const workerId = await registerWorker(database.db, tables, { name: 'another', queues: ['q'] });
  const claim = claimOf({ kinds: [kind], workerId, fromGoneWorkers: true });
  expect(await claimJobs(database.db, tables, claim)).toHaveLength(1);
  return workerId;
}

describe('in between', () => {
  test('a check by complete(tx) and its statement, the job is lost: the handler’s writes are rolled back', async () => {
    await database.client`create table written (n int)`;
    const { id } = await queue.enqueue(database.db, work);
    let other = 0;
    once('complete: checked', async () => {
      other = await takeOver('work');
    });
    let thrown: unknown;
    const drained = await drain(database.db, {
      queue,
      deadlineMs: 20_000,
      handlers: [
        handle(work, async ({ complete }) => {
          const transaction = database.db.transaction(async (tx) => {
            await tx.execute(sql`insert into written values (1)`);
            await complete(tx);
          });
          await transaction.catch((error: unknown) => {
            thrown = error;
          });
        }),
      ],
    });
    expect(thrown).toBeInstanceOf(LeaseLostError);
    expect(drained).toMatchObject({ completed: 0, failed: 0 });
    expect([...(await database.client`select * from written`)]).toEqual([]);
    expect(await jobRow(database.client, id)).toMatchObject({ worker_id: other, attempt: 2 });
  });

  test('the rollback of runNext and the writing of its outcome, somebody claims the job: it is theirs', async () => {
    const { id } = await queue.enqueue(database.db, slow);
    let other = 0;
    once('runNext: rolled back', async () => {
      other = await takeOver('slow');
    });
    const ran = await runNext(database.db, {
      queue,
      handlers: [
        handle(slow, ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve))),
      ],
    });
    expect(ran).toMatchObject({ outcome: 'failed', error: { name: 'JobTimeoutError' } });
    expect(await jobRow(database.client, id)).toMatchObject({
      worker_id: other,
      attempt: 1,
      errors: [],
    });
  });

  test('the rollback of runNext and the writing of its last outcome, the end is requested: it is cancelled', async () => {
    const last = defineJob('last', { queue: 'q', timeoutMs: 20, maxAttempts: 2 });
    const { id } = await queue.enqueue(database.db, last);
    // A worker that is gone has it, so it is not cancelled at once.
    await database.client`
      update queue_jobs set worker_id = 999999, attempt = 1, fence = fence + 1, claimed_at = now()`;
    once('runNext: rolled back', () => queue.cancel(database.db, id, 'enough'));
    const ran = await runNext(database.db, { queue, handlers: [handle(last, () => new Promise(() => {}))] });
    expect(ran).toMatchObject({ outcome: 'cancelled' });
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'cancelled',
      errors: [{ attempt: 2, message: 'enough' }],
    });
  });
});

describe('a worker whose connection breaks', () => {
  test('after a claim took effect gives the jobs back, and no attempt is spent', async () => {
    const { id } = await queue.enqueue(database.db, work);
    once('claim: answered', async () => {
      expect(await jobRow(database.client, id)).toMatchObject({ attempt: 1 });
      throw new Error('the connection broke');
    });
    const worker = createWorker(database.db, { queue, handlers: [handle(work, () => {})] });
    const error = nextEvent(worker, 'error');
    const completed = nextEvent(worker, 'completed');
    await worker.start();
    expect((await error)[0]).toMatchObject({
      during: "claiming from 'q'",
      error: { message: 'the connection broke' },
    });
    await completed;
    await worker.stop();
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  test.each([
    ['finish', 'settle: finished', () => {}, { completed: 1 }],
    ['retry', 'settle: written', () => Promise.reject(new Error('no')), { failed: 1 }],
    ['snooze', 'settle: written', () => snooze(3_600_000), { snoozed: 1 }],
    [
      'discard',
      'settle: finished',
      () => Promise.reject(new NonRetryableError('no')),
      { failed: 1, discarded: 1 },
    ],
  ] as const)(
    'after it has written a %s writes it again, and announces what became of it',
    async (_, point, run, counts) => {
      await queue.enqueue(database.db, work);
      const passed = once(point, async () => {
        throw new Error('the connection broke');
      });
      const drained = await drain(database.db, { queue, deadlineMs: 20_000, handlers: [handle(work, run)] });
      expect(passed.times).toBeGreaterThan(1);
      const nothing = { completed: 0, failed: 0, discarded: 0, snoozed: 0, cancelled: 0, interrupted: 0 };
      expect(drained).toEqual({ ...nothing, ...counts, empty: true });
    },
  );

  test('after an outcome was written writes it again, to no effect', async () => {
    const { id } = await queue.enqueue(database.db, work);
    const passed = once('settle: finished', async () => {
      expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed' });
      throw new Error('the connection broke');
    });
    let runs = 0;
    const worker = createWorker(database.db, { queue, handlers: [handle(work, () => void runs++)] });
    const error = nextEvent(worker, 'error');
    const completed = nextEvent(worker, 'completed');
    await worker.start();
    expect((await error)[0].during).toMatch(/^settling/);
    await completed;
    await until(() => passed.times === 2);
    await worker.stop();
    expect(runs).toBe(1);
    expect([
      ...(await database.client`select job_id::int, (fence - floor(extract(epoch from created_at) * 1000))::int as claims from queue_results`),
    ]).toEqual([{ job_id: id, claims: 1 }]);
  });
});

describe('in between', () => {
  test('a check that has seen a silent worker and its removal, the worker shows itself: it stays', async () => {
    // Nobody was silent for longer than the server has been up.
    const isUp = () => database.client`
      select from (select pg_postmaster_start_time() as at) as start where start.at < now() - interval '16 seconds'`;
    await until(async () => (await isUp()).length === 1);
    await database.client`
      insert into queue_workers (id, name, queues, seen_at) overriding system value
      values (424242, 'silent', '[]', now() - interval '1 hour')`;
    const passed = once('liveness: checked', async () => {
      await database.client`update queue_workers set seen_at = statement_timestamp() where id = 424242`;
    });
    const worker = createWorker(database.db, { queue, handlers: [handle(work, () => {})], silentMs: 15_000 });
    const gone: unknown[] = [];
    worker.on('gone', (who) => gone.push(who));
    await worker.start();
    expect(passed.times).toBe(1);
    expect([...(await database.client`select name from queue_workers where id = 424242`)]).toHaveLength(1);
    await worker.stop();
    expect(gone).toEqual([]);
  });

  test('a worker’s return and its question what it has lost, a peer claims a job: that handler is told', async () => {
    let told: unknown;
    const { id } = await queue.enqueue(database.db, work);
    const handler = handle(
      work,
      ({ signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            told = signal.reason;
            resolve();
          });
        }),
    );
    const worker = createWorker(database.db, { queue, handlers: [handler] });
    const claimed = nextEvent(worker, 'claimed');
    const lost = nextEvent(worker, 'lost');
    await worker.start();
    await claimed;
    let other = 0;
    once('liveness: returned', async () => {
      other = await takeOver('work');
    });
    await database.client`delete from queue_workers`;
    expect((await lost)[0].job.id).toBe(id);
    await worker.stop();
    expect(told).toBeInstanceOf(LeaseLostError);
    expect(await jobRow(database.client, id)).toMatchObject({ worker_id: other, attempt: 2 });
  });
});
