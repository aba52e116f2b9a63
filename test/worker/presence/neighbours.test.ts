import { drizzle } from 'drizzle-orm/node-postgres';
import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { createQueueTables, type QueueTables } from 'drizzle-queue/schema';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { quotedName } from '../../../src/core/sql/quoted-name.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

/** Copies of one template: their tables have the same oids, and their workers the same ids. */
const first = useTestDatabase();
const second = useTestDatabase();
const job = defineJob('work');

async function start(url: string, tables?: QueueTables) {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const db = drizzle({ client: pool });
  const queue = createQueue({ tables });
  let runs = 0;
  const gone: number[] = [];
  const worker = createWorker(db, {
    queue,
    log: false,
    handlers: [
      handle(job, () => {
        runs++;
      }),
    ],
  });
  worker.on('gone', ({ workerId }) => gone.push(workerId));
  onTestFinished(async () => {
    await worker.stop();
    await pool.end();
  });
  const listening = nextEvent(worker, 'listening');
  const started = nextEvent(worker, 'started');
  await worker.start();
  await listening;
  const [{ workerId }] = await started;
  return { db, queue, worker, workerId, gone, runs: () => runs };
}

test('workers with the same id, in two databases of a server and in two sets of tables, are strangers to each other', async () => {
  const mail = createQueueTables({ prefix: 'mail_' });
  for (const [original, table] of [
    ['queue_jobs', mail.queueJobs],
    ['queue_results', mail.queueResults],
    ['queue_workers', mail.queueWorkers],
    ['queue_pauses', mail.queuePauses],
  ] as const) {
    await first.client.unsafe(`create table ${quotedName(table)} (like ${original} including all)`);
  }
  const workers = [await start(first.url), await start(first.url, mail), await start(second.url)];
  expect(new Set(workers.map(({ workerId }) => workerId)).size).toBe(1);

  // Each holds its session, although the locks of all are in one server's table.
  const held = async () => {
    const [row] = await first.client`
      select count(distinct (database, classid, objid))::int as locks from pg_locks
      where locktype = 'advisory' and objsubid = 1 and granted
        and database in (select oid from pg_database
          where datname in (${new URL(first.url).pathname.slice(1)}, ${new URL(second.url).pathname.slice(1)}))`;
    return row?.locks;
  };
  await until(async () => (await held()) === workers.length);

  // Each runs its own job, and only that.
  for (const [index, { db, queue }] of workers.entries()) {
    const { id } = await queue.enqueue(db, job);
    await until(async () => (await queue.find(db, id))?.state === 'completed');
    expect(workers.map(({ runs }) => runs())).toEqual(workers.map((_, other) => Number(other <= index)));
  }

  // The end of one session says nothing of the others: the worker in the other tables and the one in the other database stay.
  const [ended, ...others] = workers;
  await ended?.worker.stop();
  await until(async () => (await held()) === others.length);
  for (const { db, queue } of others) {
    const { id } = await queue.enqueue(db, job);
    await until(async () => (await queue.find(db, id))?.state === 'completed');
  }
  expect(workers.map(({ gone }) => gone)).toEqual([[], [], []]);
});
