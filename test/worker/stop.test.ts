import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, fail, handle, QueueError } from 'drizzle-queue';
import { queueJobs, queueWorkers } from 'drizzle-queue/schema';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { citusCluster } from '../support/citus.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';
import { startWorkerProcess } from './worker-process.ts';

const database = useTestDatabase();
const queue = createQueue();
const sleep = defineJob('sleep');

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

/** A statement with this text waits for a lock. */
/** Ended with its test, so that none takes the jobs of the next. */
function startSleeper(env: Record<string, string> = {}) {
  const worker = startWorkerProcess('worker/fixtures/sleeper-worker.ts', {
    DATABASE_URL: database.url,
    ...env,
  });
  onTestFinished(() => void worker.child.kill('SIGKILL'));
  return worker;
}

async function untilWaiting(text: string): Promise<void> {
  await until(async () => {
    const waiting = await database.client`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${text}%`}`;
    return waiting.length > 0;
  });
}

describe('stop', () => {
  test('lets a running handler finish, claims no more, and leaves', async () => {
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const worker = createWorker(database.db, {
      queue,
      queues: { default: { concurrency: 1 } },
      handlers: [handle(sleep, () => finished)],
    });
    const [first, second] = await queue.enqueueMany(database.db, sleep, [{}, {}]);
    const claimed = nextEvent(worker, 'claimed');
    await worker.start();
    await claimed;
    const stopping = worker.stop();
    expect(worker.stop()).toBe(stopping);
    finish();
    await stopping;
    expect(await queue.find(database.db, first?.id ?? 0)).toMatchObject({ state: 'completed' });
    expect(await queue.find(database.db, second?.id ?? 0)).toMatchObject({ state: 'due', attempt: 0 });
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
  });

  test.each([
    ['throws', 'throws'],
    ['returns fail()', 'fails'],
  ])(
    'after shutdownTimeoutMs the signal is aborted and the job of a handler that %s given back without spending an attempt',
    async (_, how) => {
      let aborted: unknown;
      const worker = createWorker(database.db, {
        queue,
        shutdownTimeoutMs: 50,
        handlers: [
          handle(sleep, async ({ signal }) => {
            await new Promise<void>((resolve) => {
              signal.addEventListener('abort', () => {
                aborted = signal.reason;
                resolve();
              });
            });
            if (how === 'throws') throw new Error('I was aborted');
            return fail(new Error('I was aborted'));
          }),
        ],
      });
      const { id } = await queue.enqueue(database.db, sleep);
      const before = await queue.find(database.db, id);
      const claimed = nextEvent(worker, 'claimed');
      const interrupted = nextEvent(worker, 'interrupted');
      await worker.start();
      await claimed;
      await worker.stop();
      await interrupted;
      expect(aborted).toBeInstanceOf(QueueError);
      // Its place in the queue is what it was.
      expect(await queue.find(database.db, id)).toEqual(before);
    },
  );

  test('a handler that ignores its signal does not keep the worker', async () => {
    const worker = createWorker(database.db, {
      queue,
      shutdownTimeoutMs: 0,
      handlers: [handle(sleep, () => new Promise(() => {}))],
    });
    const { id } = await queue.enqueue(database.db, sleep);
    const claimed = nextEvent(worker, 'claimed');
    await worker.start();
    await claimed;
    await worker.stop();
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
  });

  test('leaves also when its first try to fails, and says that it did', async () => {
    const client = postgres(database.url, { max: 4, connection: { lock_timeout: 200 }, onnotice: () => {} });
    onTestFinished(() => client.end({ timeout: 1 }));
    const worker = createWorker(drizzle({ client }), { queue, handlers: [handle(sleep, () => {})] });
    await worker.start();
    const failed = nextEvent(worker, 'error', ({ during }) => during === 'stopping');
    let stopping: Promise<void> | undefined;
    await database.db.transaction(async (tx) => {
      await tx.execute('lock table queue_workers in exclusive mode');
      stopping = worker.stop();
      const [{ error }] = await failed;
      expect(sqlStateOf(error)).toBe('55P03');
    });
    await stopping;
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
  });

  test('reads no table to find what it holds, however many queues it serves', async () => {
    const statements: string[] = [];
    const client = postgres(database.url, { max: 4, debug: (_, text) => statements.push(text) });
    onTestFinished(() => client.end({ timeout: 1 }));
    const jobs = [0, 1, 2, 3].map((n) => defineJob(`job${n}`, { queue: `queue${n}` }));
    const worker = createWorker(drizzle({ client }), {
      queue,
      shutdownTimeoutMs: 0,
      handlers: jobs.map((job) => handle(job, () => new Promise(() => {}))),
    });
    for (const job of jobs) await queue.enqueue(database.db, job);
    await worker.start();
    await until(
      async () => (await database.client`select from queue_jobs where worker_id is null`).length === 0,
    );
    await worker.stop();
    expect(statements.filter((text) => text.includes('attempt = j.attempt - 1'))).toEqual([]);
    const rows = await database.db.select().from(queueJobs);
    expect(rows.map(({ attempt, workerId }) => ({ attempt, workerId }))).toEqual(
      jobs.map(() => ({ attempt: 0, workerId: null })),
    );
  });

  test('gives back what the database has refused to settle, by id', async () => {
    const statements: string[] = [];
    const client = postgres(database.url, { max: 4, debug: (_, text) => statements.push(text) });
    onTestFinished(() => client.end({ timeout: 1 }));
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'refused' using errcode = '23514'; end $$`);
    await database.client`create trigger refuse before delete on queue_jobs for each row execute function refuse()`;
    onTestFinished(async () => void (await database.client.unsafe('drop function refuse cascade')));
    const worker = createWorker(drizzle({ client }), { queue, handlers: [handle(sleep, () => {})] });
    const { id } = await queue.enqueue(database.db, sleep, undefined, { maxAttempts: 1 });
    const refused = nextEvent(worker, 'error', ({ during }) => during.startsWith('settling job'));
    await worker.start();
    await refused;
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'running' });
    await worker.stop();
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
    expect(statements.filter((text) => text.includes('attempt = j.attempt - 1'))).toEqual([]);
  });

  test('gives back what it holds but a row that a transaction of the app has locked, which others take over', async () => {
    const [app] = await database.connect();
    if (app === undefined) throw new Error('no connection');
    const worker = createWorker(database.db, {
      queue,
      shutdownTimeoutMs: 0,
      handlers: [handle(sleep, () => new Promise(() => {}))],
    });
    worker.on('error', () => undefined);
    const ids = (await queue.enqueueMany(database.db, sleep, [{}, {}, {}])).map(({ id }) => id);
    const [, locked = 0] = ids;
    await worker.start();
    await until(
      async () => (await database.client`select from queue_jobs where worker_id is null`).length === 0,
    );
    await app.client`begin`;
    await app.client`select from queue_jobs where queue = 'default' and id = ${locked} for update`;
    expect(await runningMsUntil(worker.stop())).toBeLessThan(5_000);
    const rows = await database.db.select().from(queueJobs).orderBy(queueJobs.id);
    expect(rows.map(({ id, attempt, workerId }) => ({ id, attempt, held: workerId !== null }))).toEqual(
      ids.map((id) => ({ id, attempt: id === locked ? 1 : 0, held: id === locked })),
    );
    expect(await database.db.select().from(queueWorkers)).toEqual([]);

    await app.client`rollback`;
    const other = createWorker(database.db, { queue, handlers: [handle(sleep, () => {})] });
    onTestFinished(() => other.stop());
    await other.start();
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    // As after a crash: nobody wrote that the locked one did not end.
    const records = await Promise.all(ids.map((id) => queue.find(database.db, id)));
    expect(records.map((record) => record?.attempt)).toEqual(ids.map((id) => (id === locked ? 2 : 1)));
  });

  test('during a start: it begins nothing, leaves, and both resolve', async () => {
    const worker = createWorker(database.db, { queue, handlers: [handle(sleep, () => {})] });
    const events: string[] = [];
    for (const event of ['started', 'claimed', 'stopped'] as const)
      worker.on(event, () => events.push(event));
    await queue.enqueue(database.db, sleep);
    let over: Promise<unknown> | undefined;
    await database.client.begin(async (tx) => {
      await tx`lock table queue_workers in access exclusive mode`;
      const starting = worker.start();
      await untilWaiting('insert into');
      over = Promise.all([starting, worker.run(), worker.stop()]);
    });
    await over;
    expect(events).toEqual(['stopped']);
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
    expect(await database.client`select from queue_jobs where attempt > 0`).toHaveLength(0);
  });

  test('is not kept by a batch of results that is being deleted', { timeout: 240_000 }, async () => {
    const client = postgres(database.url, { max: 4 });
    onTestFinished(() => client.end({ timeout: 1 }));
    const worker = createWorker(drizzle({ client }), { queue, handlers: [handle(sleep, () => {})] });
    await database.client.begin(async (tx) => {
      await tx`lock table queue_results in access exclusive mode`;
      await worker.start();
      // A cluster is first asked which queues have results.
      await untilWaiting(citusCluster() === undefined ? 'delete from' : 'queue_results');
      expect(await runningMsUntil(worker.stop())).toBeLessThan(5_000);
    });
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
  });

  test('a worker that was never started can be stopped, and a stopped one not be started', async () => {
    const worker = createWorker(database.db, { queue, handlers: [handle(sleep, () => {})] });
    await worker.stop();
    await expect(async () => worker.start()).rejects.toThrow('create a new one');
  });

  test('run resolves when the worker is stopped from inside', async () => {
    const worker = createWorker(database.db, { queue, handlers: [handle(sleep, () => void worker.stop())] });
    await queue.enqueue(database.db, sleep);
    await worker.run();
    expect(await database.db.select().from(queueJobs)).toEqual([]);
  });

  test('a signal while the worker starts ends it, and its run resolves', async () => {
    let worker: ReturnType<typeof startWorkerProcess> | undefined;
    let exit: Promise<number | string> | undefined;
    await database.client.begin(async (tx) => {
      await tx`lock table queue_workers in access exclusive mode`;
      worker = startSleeper();
      await untilWaiting('insert into');
      exit = worker.end('SIGTERM');
    });
    expect(await exit).toBe(0);
    expect(worker?.output()).toBe('ended\n');
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends a process gracefully', async (signal) => {
    const { id } = await queue.enqueue(database.db, sleep);
    const worker = startSleeper(signal === 'SIGINT' ? { FOREVER: '1', SHUTDOWN_TIMEOUT_MS: '50' } : {});
    await worker.printed('begun');
    expect(await worker.end(signal)).toBe(0);
    expect(worker.output()).toContain('ended');
    const expected =
      signal === 'SIGTERM' ? { state: 'completed', output: 'slept' } : { state: 'due', attempt: 0 };
    expect(await queue.find(database.db, id)).toMatchObject(expected);
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
  });
});

describe('a worker that is killed', () => {
  test('loses its jobs to others as soon as it is declared gone; the crash spends an attempt', async () => {
    const { id } = await queue.enqueue(database.db, sleep);
    const killed = startSleeper();
    await killed.printed('begun');
    expect(await killed.end('SIGKILL')).toBe('SIGKILL');
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'running', attempt: 1 });
    // As if it had been silent for long enough.
    await database.client`update queue_workers set seen_at = now() - interval '31 seconds'`;
    const worker = createWorker(database.db, { queue, handlers: [handle(sleep, ({ job }) => job.attempt)] });
    const completed = nextEvent(worker, 'completed');
    await worker.start();
    await completed;
    await worker.stop();
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', output: 2 });
  });
});

describe('a worker that was declared gone by mistake', () => {
  test('comes back under its own id, keeps what nobody has claimed, and ends what was lost', async () => {
    const reasons: unknown[] = [];
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(sleep, async ({ signal }) => {
          signal.addEventListener('abort', () => reasons.push(signal.reason));
          await finished;
        }),
      ],
    });
    const [lost, kept] = await queue.enqueueMany(database.db, sleep, [{}, {}]);
    const claimed = nextEvent(worker, 'claimed');
    const lostEvent = nextEvent(worker, 'lost');
    await worker.start();
    await claimed;
    // In one transaction: the first heartbeat may still be on its way, and must not find the one without the other.
    await database.client.begin(async (tx) => {
      await tx`delete from queue_workers`;
      // A peer has claimed one of the two.
      await tx`
        insert into queue_workers (id, name, queues) overriding system value values (424242, 'peer', '[]')`;
      await tx`update queue_jobs set fence = fence + 1, worker_id = 424242 where id = ${lost?.id ?? 0}`;
    });
    // Its next heartbeat finds out.
    await until(() => reasons.length > 0);
    expect(reasons).toMatchObject([{ name: 'LeaseLostError', jobId: lost?.id }]);
    expect((await lostEvent)[0].job.id).toBe(lost?.id);
    finish();
    await worker.stop();
    expect(await queue.find(database.db, kept?.id ?? 0)).toMatchObject({ state: 'completed' });
    expect(await queue.find(database.db, lost?.id ?? 0)).toMatchObject({
      state: 'running',
      workerId: 424_242,
    });
  });
});
