import { setTimeout as delay } from 'node:timers/promises';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, type Database, defineJob, fixedBackoff, handle } from 'drizzle-queue';
import { queueJobs, queueWorkers } from 'drizzle-queue/schema';
import pg from 'pg';
import postgres from 'postgres';
import { beforeEach, describe, expect, test } from 'vitest';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess } from './worker-process.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { backoff: fixedBackoff(20) });
const other = defineJob('other', { queue: 'other' });

/** Whatever a worker does at intervals is due within this time: it polls every 500 ms at most seldom. */
const LISTEN_MS = 800;
const STOPS = 30;

/** A database whose statements are recorded, those on the connection that listens included. */
interface Recorded {
  readonly db: Database;
  /** The texts of the statements so far. */
  readonly sent: readonly string[];
  end(): Promise<void>;
}

function recordedPostgresJs(): Recorded {
  const sent: string[] = [];
  const client = postgres(database.url, {
    max: 4,
    onnotice: () => {},
    debug: (_, text) => sent.push(text),
  });
  return { db: drizzle({ client }), sent, end: () => client.end() };
}

function recordedNodePostgres(): Recorded {
  const sent: string[] = [];
  class RecordingClient extends pg.Client {
    // node-postgres declares a dozen overloads, and its Drizzle driver uses several.
    override query = ((...args: Parameters<pg.Client['query']>) => {
      sent.push(textOf(args[0]));
      return super.query(...args);
    }) as pg.Client['query'];
  }
  const pool = new pg.Pool({ connectionString: database.url, max: 4, Client: RecordingClient });
  const db = drizzlePg({ client: pool }) as unknown as Database;
  return { db, sent, end: () => pool.end() };
}

/** node-postgres takes a text, or an object that has one. */
function textOf(query: unknown): string {
  return typeof query === 'string' ? query : String(Reflect.get(Object(query), 'text'));
}

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

/** Starts a worker and stops it after so many milliseconds; answers what was heard of it once its stop had resolved. */
async function stoppedAfter(ms: number, { db, sent, end }: Recorded): Promise<string[]> {
  const heard: string[] = [];
  let stopped = false;
  const note = (what: string) => {
    if (stopped) heard.push(what);
  };
  const worker = createWorker(db, {
    queue,
    queues: { default: { concurrency: 3 }, other: {} },
    shutdownTimeoutMs: 50,
    handlers: [
      handle(work, async ({ job, signal }) => {
        job.progress(1);
        await delay(20, undefined, { signal });
        if (job.id % 3 === 0) throw new Error('try again');
        job.progress(2);
      }),
      handle(other, () => {}),
    ],
  });
  for (const event of ['claimed', 'completed', 'failed', 'listening', 'polling', 'idle', 'gone'] as const) {
    worker.on(event, () => note(event));
  }
  worker.on('error', ({ error, during }) => note(`${during}: ${error}`));
  const starting = worker.start();
  await delay(ms);
  await worker.stop();
  stopped = true;
  const before = sent.length;
  await starting;
  await delay(LISTEN_MS);
  heard.push(...sent.slice(before));
  await end();
  return heard;
}

describe.each([
  ['postgres.js', recordedPostgresJs],
  ['node-postgres', recordedNodePostgres],
])('%s', (_, recorded) => {
  test('once a stop has resolved, nothing of the worker runs, sends or listens', {
    timeout: 120_000,
  }, async () => {
    for (let stops = 0; stops < STOPS; stops += 5) {
      await queue.enqueueMany(
        database.db,
        work,
        Array.from({ length: 20 }, () => ({})),
      );
      await queue.enqueue(database.db, other);
      const heard = await Promise.all(
        Array.from({ length: 5 }, () => stoppedAfter(Math.random() * 120, recorded())),
      );
      expect(heard.flat()).toEqual([]);
    }
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
    const held = await database.db.select().from(queueJobs);
    expect(held.filter(({ workerId }) => workerId !== null)).toEqual([]);
    await until(async () => {
      const others = await database.client`
        select from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and query ilike 'listen%'`;
      return others.length === 0;
    });
  });
});

test('a process that stops its worker and closes its pool ends without a word', async () => {
  const worker = startWorkerProcess('worker/fixtures/idle-worker.ts', { DATABASE_URL: database.url });
  await worker.printed('listening');
  expect(await worker.end('SIGTERM')).toBe(0);
  expect(worker.output()).toBe('listening\nended\n');
});
