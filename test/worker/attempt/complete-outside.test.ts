import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  LeaseLostError,
} from 'drizzle-queue';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { clearTables } from '../../queries/support/jobs.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 5 });
const queue = createQueue();
const effects = pgTable('effects', { n: integer() });
type Transaction = Parameters<Parameters<typeof database.db.transaction>[0]>[0];
const work = defineJob('work', { maxAttempts: 2, backoff: fixedBackoff(0) });

// The app's pool, of one connection: what follows the loss of it goes out on its successor.
let app: postgres.Sql;

beforeAll(async () => {
  await database.client`create table effects (n int)`;
  app = postgres(database.url, { max: 1, onnotice: () => {} });
});
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(database.client, 'effects');
});
afterAll(() => app?.end({ timeout: 1 }));

test('a transaction whose connection was lost completes nothing on the next one', async () => {
  const db = drizzle({ client: app });
  const refusals: unknown[] = [];
  const handler = handle(work, async ({ job, complete }) => {
    let inside: Promise<void> | undefined;
    const run = async (tx: Transaction) => {
      await tx.insert(effects).values({ n: job.attempt });
      if (job.attempt === 1) {
        const [row] = await tx.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
        await database.client`select pg_terminate_backend(${row?.pid ?? 0}::int)`;
        // The pool connects anew, and postgres.js 3.4.9 sends what this function goes on to say there, outside any transaction.
        await until(() => app`select 1`.then(() => true).catch(() => delay(20, false)));
      }
      await complete(tx).catch((error: unknown) => {
        refusals.push(error);
        throw error;
      });
    };
    // The transaction is over for its caller as soon as the connection is lost; the function inside goes on.
    await db.transaction((tx) => (inside = run(tx))).catch(() => undefined);
    await inside;
  });
  const worker = createWorker(database.db, { queue, handlers: [handler] });
  const completed = nextEvent(worker, 'completed');
  await worker.start();
  await queue.enqueue(database.db, work);
  const [{ job }] = await completed;
  await until(() => refusals.length > 0);
  await worker.stop();
  expect(job.attempt).toBe(2);
  expect(String(refusals[0])).toContain('complete(tx) did not run inside a transaction');
  expect(await database.db.select().from(effects)).toEqual([{ n: 2 }]);
});

test('a transaction that has written nothing, of a worker that has lost the job, gets LeaseLostError', async () => {
  let thrown: unknown;
  const { id } = await queue.enqueue(database.db, work);
  const handler = handle(work, async ({ complete }) => {
    // Another worker, which lives, claims it: as after a declared death.
    await database.client`insert into queue_workers (id, name, queues) overriding system value values (424242, 'other', '[]')`;
    await database.client`update queue_jobs set fence = fence + 1, worker_id = 424242 where id = ${id}`;
    await database.db
      .transaction((tx) => complete(tx))
      .catch((error: unknown) => {
        thrown = error;
      });
  });
  await drain(database.db, { queue, handlers: [handler], deadlineMs: 20_000 });
  expect(thrown).toBeInstanceOf(LeaseLostError);
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'running', workerId: 424_242 });
});

test('a transaction that has written nothing completes its job, and one that has only read', async () => {
  for (const first of [sql`select 1`, sql`select count(*) from effects`]) {
    const { id } = await queue.enqueue(database.db, work);
    const handler = handle(work, ({ complete }) =>
      database.db.transaction(async (tx) => {
        await tx.execute(first);
        await complete(tx);
        await tx.insert(effects).values({ n: 1 });
      }),
    );
    expect(await drain(database.db, { queue, handlers: [handler], deadlineMs: 20_000 })).toMatchObject({
      completed: 1,
      failed: 0,
    });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', attempt: 1 });
  }
});
