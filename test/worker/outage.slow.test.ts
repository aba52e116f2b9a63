import { drizzle } from 'drizzle-orm/node-postgres';
import { createQueue, createWorker, type Database, defineJob, handle } from 'drizzle-queue';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { migrateDatabase } from '../support/databases.ts';
import { startPostgres } from '../support/embedded-postgres.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';

const queue = createQueue();
const sleep = defineJob('sleep');

test('after a crash of the server nobody is declared gone who can come back; who cannot is, later', {
  timeout: 240_000,
}, async () => {
  const server = await startPostgres({ settings: { synchronous_commit: true } });
  onTestFinished(() => server.stop());
  await migrateDatabase(server.url);
  const open = () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 4 });
    pool.on('error', () => {});
    onTestFinished(() => pool.end());
    return pool;
  };
  const observer = open();
  const rows = async (query: string) => (await observer.query(query)).rows;
  const db = drizzle({ client: observer }) as unknown as Database;

  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const gone: number[] = [];
  const lost: number[] = [];
  const workers = await Promise.all(
    [1, 2, 3].map(async () => {
      const worker = createWorker(drizzle({ client: open() }) as unknown as Database, {
        queue,
        queues: { default: { concurrency: 1 } },
        handlers: [handle(sleep, () => finished)],
      });
      onTestFinished(() => worker.stop());
      worker.on('error', () => {});
      worker.on('gone', ({ workerId }) => gone.push(workerId));
      worker.on('lost', ({ job }) => lost.push(job.id));
      await worker.start();
      return worker;
    }),
  );
  await queue.enqueueMany(db, sleep, [{}, {}, {}]);
  await until(async () => (await rows('select from queue_jobs where worker_id is not null')).length === 3);
  await until(async () => (await rows('select from queue_workers where session is not null')).length === 3);
  // One that is dead: by its row it holds a session, and it will not come back.
  await observer.query(
    `insert into queue_workers (id, name, queues, session) overriding system value values (424242, 'dead', '[]', 2147483647)`,
  );
  const respite = Promise.race(workers.map((worker) => nextEvent(worker, 'gone')));
  await server.crash();
  await server.restart();
  const upSeconds = respite.then(() =>
    rows('select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 as up'),
  );
  await until(async () => (await rows('select from queue_workers where session is not null')).length === 4, {
    timeoutMs: 40_000,
  });
  await respite;
  expect(gone).toEqual([424_242]);
  expect((await upSeconds)[0].up).toBeGreaterThan(10);
  finish();
  await until(async () => (await rows('select from queue_jobs')).length === 0);
  expect(await rows('select distinct attempt, state from queue_results')).toEqual([
    { attempt: 1, state: 'completed' },
  ]);
  expect(lost).toEqual([]);
});

test('while the database is away a worker that asks for cancels and pauses says so seldom, and asks at once afterwards', {
  timeout: 240_000,
}, async () => {
  const server = await startPostgres({ settings: { synchronous_commit: true } });
  onTestFinished(() => server.stop());
  await migrateDatabase(server.url);
  const pool = new pg.Pool({ connectionString: server.url, max: 4 });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  const db = drizzle({ client: pool }) as unknown as Database;
  const worker = createWorker(db, { queue, handlers: [handle(sleep, () => {})], listen: false });
  onTestFinished(() => worker.stop());
  let heartbeats = 0;
  let looks = 0;
  worker.on('error', ({ during }) => {
    if (during === 'the heartbeat') heartbeats++;
    if (during === 'looking for cancels and pauses') looks++;
  });
  await worker.start();
  await server.crash();
  // The heartbeat reports an outage at once, and then every five seconds.
  await until(() => heartbeats === 3, { timeoutMs: 40_000 });
  expect(looks).toBeGreaterThan(0);
  expect(looks).toBeLessThan(5);
  await server.restart();
  const observer = new pg.Pool({ connectionString: server.url });
  // Its end does not wait for the server, whose stop may come first.
  observer.on('error', () => {});
  onTestFinished(() => observer.end());
  const observerDb = drizzle({ client: observer }) as unknown as Database;
  const paused = nextEvent(worker, 'paused');
  await queue.pause(observerDb, 'default');
  const seen = 'select from queue_workers where seen_at > pg_postmaster_start_time()';
  await until(async () => (await observer.query(seen)).rowCount === 1);
  // The heartbeat was answered. A try that is not told so may come 6.25 seconds after the one before.
  expect(await runningMsUntil(paused)).toBeLessThan(2_500);
});
