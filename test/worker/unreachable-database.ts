import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, type Database, defineJob, drain, handle } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { type UsedTestDatabase, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';

type Driver = 'postgres.js' | 'node-postgres';

/** With it a statement takes 700 ms: postgres.js goes there and back twice, to ask for the types of the parameters. */
const DELAY_MS: Readonly<Record<Driver, number>> = { 'postgres.js': 175, 'node-postgres': 350 };

let database: UsedTestDatabase;
const queue = createQueue();
const works = Array.from({ length: 6 }, (_, n) => defineJob(`work${n}`, { queue: `queue${n}` }));

/** Connections through a proxy, which can fall silent: then nothing is answered, and nothing refused. */
async function proxied(driver: Driver): Promise<{ proxy: TcpProxy; db: Database }> {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const url = proxy.url(database.url);
  onTestFinished(async () => {
    // Whoever still waits for an answer gets an error.
    proxy.weather = 'fine';
    await proxy.close();
  });
  if (driver === 'postgres.js') {
    const client = postgres(url, { max: 8, onnotice: () => {}, fetch_types: false });
    onTestFinished(() => client.end({ timeout: 0 }));
    return { proxy, db: drizzle({ client }) };
  }
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  onTestFinished(() => void pool.end().catch(() => undefined));
  return { proxy, db: drizzlePg({ client: pool }) as unknown as Database };
}

/** Declares the tests of a worker whose database does not answer, or answers slowly, on one driver. */
export function unreachableDatabase(driver: Driver): void {
  database = useTestDatabase();
  beforeEach(async () => {
    await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
  });

  describe(`${driver}: when the database does not answer`, () => {
    test('a stop takes shutdownTimeoutMs and 5 seconds at most, whatever the worker was at', {
      timeout: 60_000,
    }, async () => {
      const { proxy, db } = await proxied(driver);
      const worker = createWorker(db, {
        queue,
        shutdownTimeoutMs: 1_000,
        handlers: works.map((work) => handle(work, () => new Promise(() => {}))),
      });
      worker.on('error', () => {});
      const listening = nextEvent(worker, 'listening');
      await worker.start();
      await listening;
      for (const work of works) await queue.enqueue(database.db, work);
      await until(
        async () => (await database.client`select from queue_jobs where worker_id is null`).length === 0,
      );
      proxy.weather = 'silent';
      expect(await runningMsUntil(worker.stop())).toBeLessThan(6_000);
    });

    test('from the first statement on, a start can be stopped', { timeout: 60_000 }, async () => {
      const { proxy, db } = await proxied(driver);
      proxy.weather = 'silent';
      const worker = createWorker(db, { queue, handlers: works.map((work) => handle(work, () => {})) });
      worker.on('error', () => {});
      const running = worker.run();
      const starting = worker.start();
      expect(await runningMsUntil(worker.stop())).toBeLessThan(5_000);
      await Promise.all([running, starting]);
      await expect(worker.start()).rejects.toThrow('create a new one');
    });

    test('a drain ends after its deadline', { timeout: 60_000 }, async () => {
      const { proxy, db } = await proxied(driver);
      proxy.weather = 'silent';
      const handlers = works.map((work) => handle(work, () => {}));
      const draining = drain(db, { queue, handlers, deadlineMs: 300 });
      expect(await runningMsUntil(draining)).toBeLessThan(5_300);
      expect(await draining).toMatchObject({ completed: 0, empty: false });
    });
  });

  describe(`${driver}: when the database is slow`, () => {
    test('a stop leaves in time, and leaves no job held', { timeout: 60_000 }, async () => {
      const { proxy, db } = await proxied(driver);
      const worker = createWorker(db, {
        queue,
        shutdownTimeoutMs: 100,
        handlers: works.map((work) => handle(work, () => new Promise(() => {}))),
      });
      const listening = nextEvent(worker, 'listening');
      await worker.start();
      await listening;
      for (const work of works) await queue.enqueue(database.db, work);
      await until(
        async () => (await database.client`select from queue_jobs where worker_id is null`).length === 0,
      );
      proxy.delayMs = DELAY_MS[driver];
      expect(await runningMsUntil(worker.stop())).toBeLessThan(5_100);
      const jobs = await database.client`
      select distinct attempt, worker_id from queue_jobs where worker_id is not null or attempt <> 0`;
      expect(jobs).toEqual([]);
      expect(await database.client`select from queue_workers`).toHaveLength(0);
    });

    test('a stop settles thousands of outcomes that wait for it', { timeout: 60_000 }, async () => {
      const count = 2_000;
      const { proxy, db } = await proxied(driver);
      let open = () => {};
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      let running = 0;
      const [work = defineJob('work')] = works;
      const worker = createWorker(db, {
        queue,
        queues: { queue0: { concurrency: count } },
        shutdownTimeoutMs: 100,
        handlers: [
          handle(work, () => {
            running++;
            return opened;
          }),
        ],
      });
      let completed = 0;
      worker.on('completed', () => completed++);
      await queue.enqueueMany(database.db, work, new Array(count).fill({}));
      await worker.start();
      await until(() => running === count);
      proxy.delayMs = DELAY_MS[driver];
      open();
      expect(await runningMsUntil(worker.stop())).toBeLessThan(5_100);
      expect(completed).toBe(count);
      expect(await database.client`select from queue_jobs`).toHaveLength(0);
    });
  });
}
