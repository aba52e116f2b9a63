import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  handle,
  type WorkerEvents,
} from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { listenOf } from '../../../src/core/drivers/detect.ts';
import type { Listen } from '../../../src/core/drivers/listen.ts';
import { notifyWorkers } from '../../../src/core/queries/presence/notify-workers.ts';
import { wakeChannel } from '../../../src/core/sql/wake-channel.ts';
import { Retries } from '../../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Listener } from '../../../src/core/worker/presence/listener.ts';
import { tables } from '../../queries/support/jobs.ts';
import { migrateDatabase } from '../../support/databases.ts';
import { startPostgres } from '../../support/embedded-postgres.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 4 });
const queue = createQueue();
const work = defineJob('work');
/** By polling alone, a job would start after a minute. */
const SELDOM = 60_000;

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

async function enqueueAndNotify(): Promise<void> {
  await database.db.transaction(async (tx) => {
    await queue.enqueue(tx, work);
    await notifyWorkers(tx, tables, 'default');
  });
}

/** A worker that listens, and whose queue is idle. */
async function idleWorker(db: Database = database.db) {
  const worker = createWorker(db, { queue, pollIntervalMs: SELDOM, handlers: [handle(work, () => {})] });
  // A test that fails must not leave its worker to the next.
  onTestFinished(() => worker.stop());
  const listening = nextEvent(worker, 'listening');
  const idle = nextEvent(worker, 'idle');
  await worker.start();
  await Promise.all([listening, idle]);
  return worker;
}

/** The connections that listen, of workers that hold their sessions. */
async function listenerPids(): Promise<number[]> {
  const rows = await database.client<{ pid: number }[]>`
    select l.pid from pg_locks as l join pg_database as d on d.oid = l.database
    where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and d.datname = current_database()`;
  return rows.map(({ pid }) => pid);
}

describe('a worker that listens', () => {
  test('starts a job when it is told of it', async () => {
    const worker = await idleWorker();
    await until(async () => (await listenerPids()).length === 1);
    const completed = nextEvent(worker, 'completed');
    await enqueueAndNotify();
    await completed;
    await worker.stop();
    await until(async () => (await listenerPids()).length === 0);
  });

  test('looks when its connection was lost and is back, since it may have missed something', async () => {
    const worker = await idleWorker();
    const errors: WorkerEvents['error'][0][] = [];
    worker.on('error', (error) => errors.push(error));
    const polling = nextEvent(worker, 'polling');
    const listening = nextEvent(worker, 'listening');
    const completed = nextEvent(worker, 'completed');
    const pids = await until(async () => {
      const pids = await listenerPids();
      return pids.length > 0 && pids;
    });
    await database.client`select pg_terminate_backend(pid) from unnest(${pids}::int[]) as pid`;
    await polling;
    // Nobody is told of this one.
    await database.db.transaction((tx) => queue.enqueue(tx, work));
    await completed;
    await listening;
    const next = nextEvent(worker, 'completed');
    await enqueueAndNotify();
    await next;
    await worker.stop();
    expect(errors.map(({ during }) => during)).toEqual(['listening']);
  });

  test('misses none that comes while a claim is under way', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 4 });
    const db = drizzle({ client: pool });
    const execute = db.execute.bind(db);
    let meanwhile: (() => Promise<void>) | undefined;
    // The statements are the database's business; only their answers come late.
    const late = Object.assign(db, {
      execute: async (query: Parameters<typeof execute>[0]) => {
        const rows = await execute(query);
        // Only claims return sizes. Other statements (a look, a heartbeat) may end between, and leave it in place.
        if (!JSON.stringify(rows).includes('"name":"payload_bytes"')) return rows;
        const run = meanwhile;
        meanwhile = undefined;
        await run?.();
        return rows;
      },
    });
    const worker = await idleWorker(late as unknown as Database);
    let heard = 0;
    const { unlisten } = await database.client.listen(wakeChannel(tables), () => heard++);
    let told = false;
    meanwhile = async () => {
      const before = heard;
      await enqueueAndNotify();
      await until(() => heard > before);
      // The worker's own connection has been sent it in the same moment; this brings it in.
      await new Promise(setImmediate);
      told = true;
    };
    const completed = nextEvent(worker, 'completed');
    // A claim that finds nothing.
    await notifyWorkers(database.db, tables, 'default');
    await completed;
    expect(told).toBe(true);
    await worker.stop();
    await unlisten();
    await pool.end();
  });

  test('wakes no queue but the one that is named', async () => {
    const other = defineJob('other', { queue: 'other' });
    let looks = 0;
    let lastLookMs = 0;
    const noteLook = (text: string) => {
      if (!text.includes('due_at')) return;
      looks++;
      lastLookMs = performance.now();
    };
    const client = postgres(database.url, { max: 4, debug: (_, text) => noteLook(text) });
    onTestFinished(() => client.end({ timeout: 5 }));
    const worker = createWorker(drizzlePostgresJs({ client }), {
      queue,
      pollIntervalMs: SELDOM,
      handlers: [handle(work, () => {}), handle(other, () => {})],
    });
    // A test that fails must not leave its worker to the next.
    onTestFinished(() => worker.stop());
    const idle: string[] = [];
    worker.on('idle', (event) => idle.push(event.queue));
    const listening = nextEvent(worker, 'listening');
    await worker.start();
    await listening;
    await until(() => idle.length === 2);
    // It looks once more when it has begun to listen; the next look comes a minute later.
    await until(() => looks > 0 && performance.now() - lastLookMs > 1_000);
    const claims: string[] = [];
    worker.on('claimed', (event) => claims.push(event.queue));
    // Both have a job; only one is told of.
    const completed = nextEvent(worker, 'completed');
    await database.db.transaction(async (tx) => {
      await tx.execute(
        `insert into queue_jobs (queue, kind, payload, max_attempts) values ('other', 'other', 'null', 1)`,
      );
      await tx.execute(
        `insert into queue_jobs (queue, kind, payload, max_attempts) values ('default', 'work', 'null', 1)`,
      );
      await notifyWorkers(tx, tables, 'default');
    });
    expect((await completed)[0].job.queue).toBe('default');
    expect(claims).toEqual(['default']);
  });

  test('sees what was enqueued long before its commit', async () => {
    let sweeps = 0;
    const debug = (_: number, text: string) => {
      if (text.includes('overlooked')) sweeps++;
    };
    const client = postgres(database.url, { max: 4, debug, onnotice: () => {} });
    onTestFinished(() => client.end({ timeout: 1 }));
    const worker = await idleWorker(drizzlePostgresJs({ client }));
    const [begun] = await database.client<{ at: string }[]>`select clock_timestamp()::text as at`;
    let begins: Promise<unknown> | undefined;
    await database.db.transaction(async (tx) => {
      const { id } = await queue.enqueue(tx, work);
      begins = nextEvent(worker, 'completed', ({ job }) => job.id === id);
      await notifyWorkers(tx, tables, 'default');
      // Others come and go meanwhile, which raises the floors past it.
      await until(async () => {
        const between = nextEvent(worker, 'completed');
        await enqueueAndNotify();
        await between;
        const [passed] = await database.client`
          select clock_timestamp() > ${begun?.at ?? ''}::timestamptz + interval '1500 ms' as passed`;
        return passed?.passed;
      });
      // The next sweep by time comes after a second and a half or more.
      const before = sweeps;
      await until(() => sweeps > before, { intervalMs: 5 });
    });
    expect(await runningMsUntil(Promise.resolve(begins))).toBeLessThan(1_000);
    await worker.stop();
  });
});

describe('a worker that does not listen', () => {
  test('polls, says so, and opens no connection', async () => {
    const worker = createWorker(database.db, { queue, listen: false, handlers: [handle(work, () => {})] });
    const polling = nextEvent(worker, 'polling');
    const idle = nextEvent(worker, 'idle');
    await worker.start();
    expect(await polling).toEqual([{ error: undefined }]);
    await idle;
    const completed = nextEvent(worker, 'completed');
    await database.db.transaction((tx) => queue.enqueue(tx, work));
    await completed;
    expect(await listenerPids()).toEqual([]);
    await worker.stop();
  });

  test('because notifications do not arrive, as behind a pooler: it says why, once', async () => {
    const errors: unknown[] = [];
    const events = new WorkerEmitter();
    let wakes = 0;
    // It listens in earnest, in a database where nobody notifies.
    const url = new URL(database.url);
    url.pathname = 'postgres';
    const pool = new pg.Pool({ connectionString: url.href });
    const elsewhere = listenOf(drizzle({ client: pool }) as unknown as Database) as Listen;
    const listener = new Listener({
      db: database.db,
      tables,
      listen: elsewhere,
      events,
      retries: new Retries(),
      onWake: () => wakes++,
    });
    events.on('error', ({ error }) => errors.push(error));
    const polling = new Promise((resolve) => events.on('polling', resolve));
    const stopping = new AbortController();
    const running = listener.run(stopping.signal);
    await polling;
    expect(listener.listening).toBe(false);
    expect(errors).toMatchObject([{ message: expect.stringContaining('set listen: false') }]);
    // It tries again, since a busy server may be slow.
    await until(() => wakes > 1);
    stopping.abort();
    await running;
    expect(errors).toHaveLength(1);
    await pool.end();
  });
});

test('a pool whose connections were lost is no reason to give up the one that listens', async () => {
  const [{ db } = database] = await database.connect();
  const execute = db.execute.bind(db);
  let refused = 0;
  const broken = Object.assign(db, {
    execute: (...query: Parameters<typeof execute>) => {
      if (++refused > 3) return execute(...query);
      throw Object.assign(new Error('write CONNECTION_CLOSED'), { code: 'CONNECTION_CLOSED' });
    },
  });
  const listenAgain = listenOf(broken);
  let calls = 0;
  const listen: Listen = async (...args) => {
    calls++;
    await listenAgain?.(...args);
  };
  const stopping = new AbortController();
  const listener = new Listener({
    db: broken,
    tables,
    listen,
    events: new WorkerEmitter(),
    retries: new Retries(),
    onWake: () => {},
  });
  const running = listener.run(stopping.signal);
  await until(() => listener.listening);
  expect(refused).toBeGreaterThan(3);
  expect(calls).toBe(1);
  stopping.abort();
  await running;
});

test.each(['postgres.js', 'node-postgres'])(
  '%s: a worker whose server has gone can be stopped',
  async (driver) => {
    const server = await startPostgres();
    await migrateDatabase(server.url);
    // Its own query for array types may fail where nobody can catch it (see docs/workers.md).
    const client = postgres(server.url, { max: 4, fetch_types: false });
    const pool = new pg.Pool({ connectionString: server.url, max: 4 });
    pool.on('error', () => {});
    const db: Database =
      driver === 'postgres.js'
        ? drizzlePostgresJs({ client })
        : (drizzle({ client: pool }) as unknown as Database);
    const worker = await idleWorker(db);
    worker.on('error', () => {});
    const polling = nextEvent(worker, 'polling');
    await server.crash();
    await polling;
    const startMs = performance.now();
    await worker.stop();
    expect(performance.now() - startMs).toBeLessThan(5_000);
    await client.end({ timeout: 0 });
    await pool.end();
    await server.stop();
  },
);
