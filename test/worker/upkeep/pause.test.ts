import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, type Database, defineJob, drain, handle } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { countLooks, expectHeardAtOnce } from './looks.ts';

const database = useTestDatabase({ max: 6 });
const queue = createQueue();
const work = defineJob('work');
const other = defineJob('other', { queue: 'other' });

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_pauses');
});

/** A worker of two queues that has started; nothing runs in it yet. */
async function started({ listen = true, run = (): unknown => undefined, db = database.db as Database } = {}) {
  const worker = createWorker(db, {
    queue,
    listen,
    queues: { default: { concurrency: 1 }, other: {} },
    handlers: [handle(work, run as () => undefined), handle(other, () => {})],
  });
  onTestFinished(() => worker.stop());
  const begun: string[] = [];
  worker.on('claimed', (event) => begun.push(event.queue));
  const mode = nextEvent(worker, listen ? 'listening' : 'polling');
  await worker.start();
  await mode;
  return { worker, begun };
}

/** A worker has had its chance to begin jobs of the paused queue: one of another queue, enqueued later, has ended. */
async function workedElsewhere({ worker }: Awaited<ReturnType<typeof started>>): Promise<void> {
  const completed = nextEvent(worker, 'completed', ({ job }) => job.kind === 'other');
  await queue.enqueue(database.db, other);
  await completed;
}

const states = async () =>
  (await database.db.select().from(queueJobs).orderBy(queueJobs.id)).map(({ attempt, workerId }) =>
    workerId === null ? `waits ${attempt}` : `held ${attempt}`,
  );

describe.each([true, false])('a paused queue; the worker listens: %s', (listen) => {
  test('is paused at once, while others go on, and goes on at once', async () => {
    const { db, looks } = countLooks(database.url);
    const worker = await started({ listen, db });
    const paused = nextEvent(worker.worker, 'paused');
    await queue.pause(database.db, 'default');
    await expectHeardAtOnce(paused, { listen, looks });
    expect(await paused).toEqual([{ queue: 'default' }]);
    const { id } = await queue.enqueue(database.db, work);
    await workedElsewhere(worker);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
    const completed = nextEvent(worker.worker, 'completed');
    const resumed = nextEvent(worker.worker, 'resumed');
    await queue.resume(database.db, 'default');
    await expectHeardAtOnce(resumed, { listen, looks });
    expect(await resumed).toEqual([{ queue: 'default' }]);
    // An idle worker would look for jobs after a second.
    expect(await runningMsUntil(completed)).toBeLessThan(1_000);
    expect((await completed)[0].job.id).toBe(id);
  });

  test('stays paused for a worker that starts', async () => {
    await queue.pause(database.db, 'default');
    const { id } = await queue.enqueue(database.db, work);
    const worker = await started({ listen });
    await workedElsewhere(worker);
    expect(worker.begun).toEqual(['other']);
    await worker.worker.stop();
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
    const next = await started({ listen });
    await workedElsewhere(next);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
    const completed = nextEvent(next.worker, 'completed');
    await queue.resume(database.db, 'default');
    await completed;
  });
});

describe('while the table of the pauses is locked', () => {
  /** A worker whose looks at the pauses fail after a tenth of a second, and how to end the lock. */
  async function startedBehindLock() {
    const [holder] = await database.connect();
    let unlock = () => {};
    const held = new Promise<void>((resolve) => {
      unlock = resolve;
    });
    let noteLocked = () => {};
    const locked = new Promise<void>((resolve) => {
      noteLocked = resolve;
    });
    const locking = holder?.client.begin(async (sql) => {
      await sql`lock table queue_pauses in access exclusive mode`;
      noteLocked();
      await held;
    });
    const client = postgres(database.url, { max: 6, connection: { lock_timeout: 100 } });
    const worker = createWorker(drizzle({ client }), {
      queue,
      listen: false,
      queues: { default: {}, other: {} },
      handlers: [handle(work, () => {}), handle(other, () => {})],
      log: false,
    });
    const begun: string[] = [];
    worker.on('claimed', (event) => begun.push(event.queue));
    const release = async () => {
      unlock();
      await locking;
    };
    onTestFinished(async () => {
      await release();
      await worker.stop();
      await client.end({ timeout: 1 });
    });
    await locked;
    const failed = nextEvent(worker, 'error', ({ during }) => during === 'looking for cancels and pauses');
    const starting = worker.start();
    await failed;
    return { worker, begun, starting, release };
  }

  const isLookedAtAgain = async () => {
    const waiting = await database.client`
      select from pg_locks where not granted and relation = 'queue_pauses'::regclass`;
    return waiting.length > 0;
  };

  test('a worker that starts claims nothing before it knows which queues are paused', async () => {
    await queue.pause(database.db, 'default');
    const { id } = await queue.enqueue(database.db, work);
    await queue.enqueue(database.db, other);
    const { worker, begun, starting, release } = await startedBehindLock();
    // The first look is over by then, and the next one comes a second after it.
    await until(isLookedAtAgain);
    expect(begun).toEqual([]);
    expect(worker.health().reasons).toEqual(['The worker has not started yet']);
    const completed = nextEvent(worker, 'completed', ({ job }) => job.kind === 'other');
    await release();
    await starting;
    await completed;
    expect(begun).toEqual(['other']);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
  });

  test('a worker that starts can be stopped', async () => {
    const { worker, begun, starting } = await startedBehindLock();
    await queue.enqueue(database.db, work);
    await worker.stop();
    await starting;
    expect(begun).toEqual([]);
    expect(await states()).toEqual(['waits 0']);
  });
});

describe('a pause', () => {
  test('lets running jobs go on, and gives back what was claimed ahead without spending an attempt', async () => {
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let runs = 0;
    const { worker } = await started({ run: () => (++runs > 20 ? finished : undefined) });
    // It learns that the jobs are short, and claims ahead.
    await queue.enqueueMany(database.db, work, new Array(20).fill({}));
    await until(async () => (await database.db.$count(queueJobs)) === 0);
    const paused = nextEvent(worker, 'paused');
    // What waits would go back by itself only half a second after the last one has begun.
    await queue.enqueueMany(database.db, work, new Array(5).fill({}));
    await until(() => runs === 21);
    await queue.pause(database.db, 'default');
    await paused;
    await until(async () => (await states()).join() === 'held 1,waits 0,waits 0,waits 0,waits 0');
    const completed = nextEvent(worker, 'completed');
    finish();
    await completed;
    await until(async () => (await states()).join() === 'waits 0,waits 0,waits 0,waits 0');
    expect(runs).toBe(21);
    await queue.resume(database.db, 'default');
    await until(async () => (await database.db.$count(queueJobs)) === 0);
  });

  test('gives back what a claim brings that was under way', async () => {
    const client = postgres(database.url, { max: 6 });
    const db = drizzle({ client });
    let late: (() => Promise<void>) | undefined;
    // The statements are the database's business; only the answer of one claim comes late.
    const unsafe = client.unsafe.bind(client);
    const slow = async (...args: Parameters<typeof unsafe>) => {
      const rows = await unsafe(...args);
      if (!args[0].includes('as begun') || rows.length === 0) return rows;
      const run = late;
      late = undefined;
      await run?.();
      return rows;
    };
    Object.assign(client, { unsafe: slow });
    let runs = 0;
    const { worker } = await started({ db, run: () => void runs++ });
    onTestFinished(() => client.end({ timeout: 1 }));
    let claimedBefore = false;
    late = async () => {
      claimedBefore = true;
      expect(await states()).toEqual(['held 1']);
      const paused = nextEvent(worker, 'paused');
      await queue.pause(database.db, 'default');
      await paused;
    };
    await queue.enqueue(database.db, work);
    await until(() => claimedBefore);
    await until(async () => (await states()).join() === 'waits 0');
    expect(runs).toBe(0);
    const completed = nextEvent(worker, 'completed');
    await queue.resume(database.db, 'default');
    await completed;
  });

  test('that is rolled back never was', async () => {
    const worker = await started();
    const events: string[] = [];
    worker.worker.on('paused', () => events.push('paused'));
    await database.db
      .transaction(async (tx) => {
        await queue.pause(tx, 'default');
        // The worker goes on meanwhile, and after it.
        const completed = nextEvent(worker.worker, 'completed');
        await queue.enqueue(database.db, work);
        await completed;
        throw new Error('rolled back');
      })
      .catch(() => {});
    const completed = nextEvent(worker.worker, 'completed');
    await queue.enqueue(database.db, work);
    await completed;
    expect(events).toEqual([]);
  });

  test('does not keep a worker from stopping', async () => {
    await queue.pause(database.db, 'default');
    const { worker } = await started();
    await queue.enqueue(database.db, work);
    await worker.stop();
    expect(await states()).toEqual(['waits 0']);
  });

  test('is heeded by drain: at its start, and when it comes while it works', async () => {
    const handlers = [
      handle(work, async ({ job }) => {
        if (job.id === first) await queue.pause(database.db, 'default');
        else await new Promise((resolve) => setTimeout(resolve, 5));
      }),
    ];
    let first = 0;
    await queue.pause(database.db, 'default');
    const jobs = await queue.enqueueMany(database.db, work, new Array(2_000).fill({}));
    const settings = { queue, queues: { default: { concurrency: 1 } }, deadlineMs: 30_000, handlers };
    expect(await drain(database.db, settings)).toMatchObject({ completed: 0, empty: true });
    expect(await database.db.$count(queueJobs)).toBe(2_000);
    await queue.resume(database.db, 'default');
    first = jobs[0]?.id ?? 0;
    const { completed, empty } = await drain(database.db, settings);
    // By themselves they would take ten seconds.
    expect(empty).toBe(true);
    expect(completed).toBeGreaterThan(0);
    expect(await states()).toEqual(new Array(2_000 - completed).fill('waits 0'));
    expect(completed).toBeLessThan(1_500);
  });
});
