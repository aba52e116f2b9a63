import { drizzle } from 'drizzle-orm/node-postgres';
import { createQueue, createWorker, defineJob, handle, type WorkerEvents } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { wakeChannel } from '../../src/core/sql/wake-channel.ts';
import { waitingFor } from '../queries/support/locks.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';

const database = useTestDatabase({ max: 4 });
const queue = createQueue();
const work = defineJob('work');

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

/** Breaks the connections of everybody who waits for the lock that this takes on the jobs, in the middle of their statements. */
async function breakStatementsInFlight(): Promise<void> {
  await database.db.transaction(async (tx) => {
    await tx.execute('lock table queue_jobs in access exclusive mode');
    await until(async () => {
      const broken = await tx.execute(`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`);
      return broken.length > 0;
    });
  });
}

describe('when connections break', () => {
  test('the worker reports it, goes on, and settles what had ended meanwhile', async () => {
    const errors: WorkerEvents['error'][0][] = [];
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const [connection = database] = await database.connect();
    const worker = createWorker(connection.db, { queue, handlers: [handle(work, () => finished)] });
    worker.on('error', (error) => errors.push(error));
    const { id } = await queue.enqueue(database.db, work);
    const claimed = nextEvent(worker, 'claimed');
    await worker.start();
    await claimed;
    await breakStatementsInFlight();
    const completed = nextEvent(worker, 'completed');
    finish();
    await completed;
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', attempt: 1 });
    const next = nextEvent(worker, 'completed');
    await queue.enqueue(database.db, work);
    await next;
    await worker.stop();
    expect(errors.length).toBeGreaterThan(0);
    for (const { during } of errors)
      expect(during).toMatch(/claiming|giving back|sweeping|looking|listening|settling|heartbeat|pruning/);
  });

  test('jobs of a claim whose answer was lost are given back, with their attempt', async () => {
    const worker = createWorker(database.db, { queue, handlers: [handle(work, ({ job }) => job.attempt)] });
    worker.on('error', () => {});
    const started = nextEvent(worker, 'started');
    const listening = nextEvent(worker, 'listening');
    await worker.start();
    const [{ workerId }] = await started;
    await listening;
    // What such a claim leaves behind: the worker's own name on a job that it knows nothing of.
    const { id } = await queue.enqueue(database.db, work);
    await database.client`
      update queue_jobs set attempt = 1, fence = 1, worker_id = ${workerId}, claimed_at = now(), run_at = now()`;
    const failedClaim = nextEvent(worker, 'error', ({ during }) => during.startsWith('claiming'));
    await database.client`alter table queue_jobs rename to hidden`;
    // An idle queue is not claimed from.
    await database.client`select pg_notify(${wakeChannel({ queueJobs })}, 'default')`;
    await failedClaim;
    await database.client`alter table hidden rename to queue_jobs`;
    await until(async () => (await queue.find(database.db, id))?.state === 'completed');
    await worker.stop();
    expect(await queue.find(database.db, id)).toMatchObject({ attempt: 1, output: 1 });
  });

  test('a worker that stops gives back what a lost claim may have taken, also when that statement is broken', async () => {
    // Not on postgres.js, which does not always say that a connection is broken. Several, so that it waits behind no
    // other statement for the lock.
    const pool = new pg.Pool({ connectionString: database.url, max: 4 });
    pool.on('error', () => undefined);
    pool.on('connect', (client) => void client.on('error', () => undefined));
    onTestFinished(() => pool.end());
    const handlers = [handle(work, () => undefined)];
    const options = { queue, handlers, listen: false, pollIntervalMs: 60_000, shutdownTimeoutMs: 0 };
    const worker = createWorker(drizzle({ client: pool }), options);
    const lost = nextEvent(worker, 'error', ({ during }) => during.startsWith('claiming'));
    // The claim loop may be the first to give it back.
    const broken = nextEvent(worker, 'error', ({ during }) => /^(stopping|giving back)/.test(during));
    const started = nextEvent(worker, 'started');
    const { id } = await queue.enqueue(database.db, work);
    let stopping: Promise<void> | undefined;
    let holding: Promise<void> | undefined;
    await database.db.transaction(async (tx) => {
      // The worker may look whether a job is due, but not claim one.
      await tx.execute('lock table queue_jobs in exclusive mode');
      await worker.start();
      const [{ workerId }] = await started;
      await breakStatement('for no key update');
      await lost;
      // As the claim leaves it, had the server carried it out all the same.
      await tx.execute(`update queue_jobs
        set attempt = 1, fence = fence + 1, worker_id = ${workerId}, claimed_at = now() where id = ${id}`);
      holding = database.client.begin(async (other) => {
        await other`lock table queue_jobs in exclusive mode`;
        const held = await other`select from queue_jobs where id = ${id} and worker_id = ${workerId}`;
        expect(held).toHaveLength(1);
        stopping = worker.stop();
        // Once: the next try is on a connection that lives.
        await breakStatement('attempt = j.attempt - 1');
        await broken;
      });
      // It comes before what the worker tries next.
      await until(async () => (await waitingFor(database.client, 'lock table')).length > 0);
    });
    await holding;
    await stopping;
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
  });
});

/** Breaks the connection of the one that waits for a lock with such a statement. */
async function breakStatement(text: string): Promise<void> {
  // Not in the transaction that holds the lock: there the activity is as it was at its first look.
  await until(async () => {
    const waiting = await waitingFor(database.client, text);
    for (const pid of waiting) await database.client`select pg_terminate_backend(${pid}::int4, 10000)`;
    return waiting.length > 0;
  });
}
