/* Workers of the tests of this folder, with whom they have declared gone. */
import { type SQL, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  handle,
  unvalidated,
  type Worker,
} from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { onTestFinished } from 'vitest';
import { queryRows } from '../../../src/core/sql/executor.ts';
import { sessionKey } from '../../../src/core/sql/session-key.ts';
import { tables } from '../../queries/support/jobs.ts';
import type { UsedTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { startWorkerProcess, type WorkerProcess } from '../worker-process.ts';
import { useSettledDatabase } from './settled-database.ts';

/** That of the test file that has called {@link useObservedWorkers} last: files follow each other in one process. */
export let database: UsedTestDatabase;
export const queue = createQueue();
export const sleep = defineJob('sleep');
export const block = defineJob('block', { payload: unvalidated<{ ms: number }>() });

/** Gives a test file its database. */
export function useObservedWorkers(): void {
  database = useSettledDatabase();
}

/** A pool of its own, as an app has it. */
export function openPool(max = 4): Database {
  const pool = new pg.Pool({ connectionString: database.url, max });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  return drizzle({ client: pool }) as unknown as Database;
}

/** A pool of postgres.js, and what is sent on it. */
export function openPostgresJs() {
  const statements: { readonly text: string; readonly atMs: number }[] = [];
  const debug = (_: number, text: string) => void statements.push({ text, atMs: performance.now() });
  const client = postgres(database.url, { max: 4, debug });
  onTestFinished(() => client.end());
  return { client, db: drizzlePostgresJs({ client }), statements };
}

interface Observed {
  readonly worker: Worker;
  readonly id: number;
  /** Whom it has declared gone. */
  readonly gone: number[];
  /** Jobs that it has lost. */
  readonly lost: number[];
}

type Options = Omit<Parameters<typeof createWorker>[1], 'queue' | 'handlers'>;

/** A worker in this process that holds its session. */
export async function startWorker(
  run: (attempt: number) => unknown = (attempt) => attempt,
  { db = openPool(), ...options }: Options & { readonly db?: Database } = {},
): Promise<Observed> {
  const worker = createWorker(db, {
    queue,
    ...options,
    handlers: [
      handle(sleep, async ({ job }) => run(job.attempt)),
      handle(block, async ({ job }) => run(job.attempt)),
    ],
  });
  // A test that fails must not leave its worker to the next.
  onTestFinished(() => worker.stop());
  const gone: number[] = [];
  const lost: number[] = [];
  worker.on('gone', ({ workerId }) => gone.push(workerId));
  worker.on('lost', ({ job }) => lost.push(job.id));
  worker.on('error', () => {});
  const started = nextEvent(worker, 'started');
  await worker.start();
  const [{ workerId: id }] = await started;
  if (options.listen !== false) await untilSession(id);
  return { worker, id, gone, lost };
}

/** A worker process that runs one job of a kind; answers its id as a worker, and that of the job. */
export async function startProcess(
  text: string,
  enqueue: () => Promise<{ id: number }>,
): Promise<{ process: WorkerProcess; id: number; jobId: number }> {
  const process = startWorkerProcess('worker/fixtures/busy-worker.ts', { DATABASE_URL: database.url });
  onTestFinished(() => void process.child.kill('SIGKILL'));
  const row = await until(async () => (await workers()).find(({ session }) => session));
  const { id: jobId } = await enqueue();
  await process.printed(text);
  if (row === undefined) throw new Error('no worker');
  return { process, id: row.id, jobId };
}

interface WorkerRow {
  readonly id: number;
  readonly session: boolean;
  readonly seen: string;
}

async function workers(): Promise<WorkerRow[]> {
  return await database.client<WorkerRow[]>`
    select id::int, session is not null as session, seen_at::text as seen from queue_workers order by id`;
}

export async function workerRow(id: number): Promise<WorkerRow | undefined> {
  return (await workers()).find((worker) => worker.id === id);
}

export async function untilSession(id: number): Promise<void> {
  await until(async () => (await workerRow(id))?.session);
}

/** Waits until a worker has shown itself so many times more. */
export async function untilSeen(id: number, times = 1): Promise<void> {
  for (let time = 0; time < times; time++) {
    const before = await workerRow(id);
    await until(async () => {
      const now = await workerRow(id);
      return now !== undefined && now.seen !== before?.seen;
    });
  }
}

export function key(id: number): SQL {
  return sessionKey(tables, sql`${id}::int8`);
}

/** Whether somebody holds the session lock of a worker. */
export async function sessionHeld(id: number): Promise<boolean> {
  const query = sql`select pg_try_advisory_xact_lock_shared(${key(id)}) as free`;
  const [row] = await queryRows(database.db, tables, query);
  return row?.free === false;
}

/** The server's process of the connection that holds the session of a worker. */
export async function sessionPid(id: number): Promise<number> {
  const query = sql`
    select l.pid from pg_locks as l join pg_database as d on d.oid = l.database
    where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and d.datname = current_database()
      and (l.classid::int8 << 32 | l.objid::int8) = ${key(id)}`;
  const [row] = await queryRows(database.db, tables, query);
  return Number(row?.pid);
}

/** Ends a connection, and waits until it is over: until then it holds its locks. */
export async function terminate(pid: number): Promise<void> {
  await database.client`select pg_terminate_backend(${pid}, 10000)`;
}
