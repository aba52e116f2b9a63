import type { PGlite } from '@electric-sql/pglite';
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, drain, handle, QueueError, type Worker } from 'drizzle-queue';
import { queueWorkers } from 'drizzle-queue/schema';
import { createTestDatabase } from 'drizzle-queue/testing';
import pg from 'pg';
import postgres from 'postgres';
import { beforeEach, describe, expect, test } from 'vitest';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const mail = defineJob('mail');

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

const drivers = {
  'postgres.js'() {
    const client = postgres(database.url, { max: 4, onnotice: () => {} });
    return { db: drizzle({ client }), end: () => client.end({ timeout: 5 }) };
  },
  'node-postgres'() {
    const pool = new pg.Pool({ connectionString: database.url, max: 4 });
    return { db: drizzleNodePostgres({ client: pool }), end: () => pool.end() };
  },
};

function errorsOf(worker: Worker): { readonly message: string; readonly during: string }[] {
  const errors: { message: string; during: string }[] = [];
  worker.on('error', ({ error, during }) => {
    errors.push({ message: error instanceof Error ? error.message : String(error), during });
  });
  return errors;
}

const ENDED = expect.stringMatching(/^The pool was ended before worker\.stop\(\)\. Call await worker\.stop/);

describe.each(Object.entries(drivers))('when the app ends its pool first, on %s', (_, open) => {
  test('a drain says that jobs are left', async () => {
    const { db, end } = open();
    await queue.enqueueMany(database.db, mail, new Array(50).fill({}));
    let ended: Promise<void> | undefined;
    const handlers = [
      handle(mail, async () => {
        ended ??= end();
        await ended;
      }),
    ];
    const options = { queue, handlers, log: false, concurrency: 1, deadlineMs: 60_000 } as const;
    expect(await drain(db, options)).toMatchObject({ empty: false });
    expect(await database.client`select from queue_jobs`).not.toHaveLength(0);
  });

  test.each([{ listen: true }, { listen: false }])(
    'no job runs twice, and one error says so (%o)',
    async ({ listen }) => {
      const { db, end } = open();
      let runs = 0;
      let finish = () => {};
      const finished = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const handlers = [handle(mail, () => finished.then(() => void runs++))];
      const worker = createWorker(db, { queue, handlers, listen, log: false });
      const errors = errorsOf(worker);
      let stopped = false;
      worker.on('stopped', () => {
        stopped = true;
      });
      let claimed = 0;
      worker.on('claimed', ({ count }) => {
        claimed += count;
      });
      const jobs = await queue.enqueueMany(database.db, mail, [{}, {}, {}]);
      await worker.start();
      await until(() => claimed === jobs.length);

      await end();
      await until(() => errors.length > 0);
      finish();
      // Nobody has called it: a worker whose pool is gone stops by itself.
      await until(() => stopped);
      await worker.stop();

      expect(errors).toEqual([{ message: ENDED, during: 'working' }]);
      for (const { id } of jobs) {
        expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', attempt: 1 });
      }
      expect(runs).toBe(3);
      expect(await database.db.select().from(queueWorkers)).toEqual([]);
    },
  );

  test('a stop that is not awaited before the end of the pool still writes what its handlers did', async () => {
    const { db, end } = open();
    let begun = false;
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const run = () => {
      begun = true;
      return finished;
    };
    const worker = createWorker(db, { queue, handlers: [handle(mail, run)], log: false });
    const errors = errorsOf(worker);
    const { id } = await queue.enqueue(database.db, mail);
    await worker.start();
    await until(() => begun);
    const stopping = worker.stop();
    await end();
    finish();
    await stopping;
    expect(errors).toEqual([{ message: ENDED, during: 'stopping' }]);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed' });
    expect(await database.db.select().from(queueWorkers)).toEqual([]);
  });

  test('a worker cannot start on it', async () => {
    const { db, end } = open();
    await end();
    const worker = createWorker(db, { queue, handlers: [handle(mail, () => {})], log: false });
    const errors = errorsOf(worker);
    await expect(worker.start()).rejects.toThrow(QueueError);
    await worker.stop();
    expect(errors).toEqual([]);
  });
});

test('a worker on PGlite, which has no other connection, gives up at once when that is closed', async () => {
  const { db, close } = await createTestDatabase({ queue });
  let begun = false;
  let abandoned: unknown;
  const run = ({ signal }: { signal: AbortSignal }) => {
    begun = true;
    return new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => {
        abandoned = signal.reason;
        resolve();
      }),
    );
  };
  // The handler has all that time, if what it does can still be written.
  const shutdownTimeoutMs = 300_000;
  const worker = createWorker(db, { queue, handlers: [handle(mail, run)], log: false, shutdownTimeoutMs });
  const errors = errorsOf(worker);
  await queue.enqueue(db, mail);
  await worker.start();
  await until(() => begun);
  const client: PGlite = db.$client;
  await client.close();
  await until(() => abandoned !== undefined);
  await worker.stop();
  expect(errors).toEqual([{ message: ENDED, during: 'working' }]);
  await close();
});
