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
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { queryRows } from '../../../src/sql/executor.ts';
import { sessionKey } from '../../../src/sql/session-key.ts';
import { tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { startWorkerProcess, type WorkerProcess } from '../worker-process.ts';

const database = useTestDatabase({ max: 4 });
const queue = createQueue();
const sleep = defineJob('sleep');
const block = defineJob('block', { payload: unvalidated<{ ms: number }>() });

// A server that has just been started has ended everybody's sessions, so nobody is declared gone for that yet.
beforeAll(async () => {
  await until(async () => {
    const [row] = await database.client`
      select pg_postmaster_start_time() < clock_timestamp() - interval '11 s' as up`;
    return row?.up;
  });
});

beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers`;
});

/** A pool of its own, as an app has it. */
function openPool(max = 4): Database {
  const pool = new pg.Pool({ connectionString: database.url, max });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  return drizzle({ client: pool }) as unknown as Database;
}

/** A pool of postgres.js, and what is sent on it. */
function openPostgresJs() {
  const statements: { readonly text: string; readonly atMs: number }[] = [];
  const debug = (_: number, text: string) => void statements.push({ text, atMs: performance.now() });
  const client = postgres(database.url, { max: 4, debug });
  onTestFinished(() => client.end());
  return { client, db: drizzlePostgresJs({ client }), statements };
}

/** A promise, and what fulfils it. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
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
async function startWorker(
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
async function startProcess(
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

async function workerRow(id: number): Promise<WorkerRow | undefined> {
  return (await workers()).find((worker) => worker.id === id);
}

async function untilSession(id: number): Promise<void> {
  await until(async () => (await workerRow(id))?.session);
}

/** Waits until a worker has shown itself so many times more. */
async function untilSeen(id: number, times = 1): Promise<void> {
  for (let time = 0; time < times; time++) {
    const before = await workerRow(id);
    await until(async () => {
      const now = await workerRow(id);
      return now !== undefined && now.seen !== before?.seen;
    });
  }
}

function key(id: number): SQL {
  return sessionKey(tables, sql`${id}::int8`);
}

/** Whether somebody holds the session lock of a worker. */
async function sessionHeld(id: number): Promise<boolean> {
  const query = sql`select pg_try_advisory_xact_lock_shared(${key(id)}) as free`;
  const [row] = await queryRows(database.db, tables, query);
  return row?.free === false;
}

/** The server's process of the connection that holds the session of a worker. */
async function sessionPid(id: number): Promise<number> {
  const query = sql`
    select l.pid from pg_locks as l join pg_database as d on d.oid = l.database
    where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and d.datname = current_database()
      and (l.classid::int8 << 32 | l.objid::int8) = ${key(id)}`;
  const [row] = await queryRows(database.db, tables, query);
  return Number(row?.pid);
}

/** Ends a connection, and waits until it is over: until then it holds its locks. */
async function terminate(pid: number): Promise<void> {
  await database.client`select pg_terminate_backend(${pid}, 10000)`;
}

describe('a worker process', () => {
  test('that is killed loses its jobs to others within 5 seconds, and is declared gone once', async () => {
    const { process, id, jobId } = await startProcess('sleeps', () => queue.enqueue(database.db, sleep));
    const survivors = [await startWorker(), await startWorker()];
    const completed = Promise.race(survivors.map(({ worker }) => nextEvent(worker, 'completed')));
    const startMs = performance.now();
    await process.end('SIGKILL');
    await completed;
    const tookMs = performance.now() - startMs;
    expect(await queue.find(database.db, jobId)).toMatchObject({ state: 'completed', output: 2 });
    expect(survivors.flatMap(({ gone }) => gone)).toEqual([id]);
    expect(tookMs).toBeLessThan(5_000);
  });

  test('whose event loop is blocked for 14 seconds is not gone: it runs its job, once', {
    timeout: 60_000,
  }, async () => {
    const { process, id, jobId } = await startProcess('blocks', () =>
      queue.enqueue(database.db, block, { ms: 14_000 }),
    );
    const peer = await startWorker();
    const before = await workerRow(id);
    const startMs = performance.now();
    let silentMs = 0;
    await until(async () => {
      if ((await workerRow(id))?.seen === before?.seen) silentMs = performance.now() - startMs;
      return (await queue.find(database.db, jobId))?.state === 'completed';
    });
    expect(silentMs).toBeGreaterThan(10_000);
    expect(await queue.find(database.db, jobId)).toMatchObject({ attempt: 1, output: 'blocked' });
    await untilSeen(id);
    expect(await workerRow(id)).toMatchObject({ session: true });
    expect(peer.gone).toEqual([]);
    expect(await process.end('SIGTERM')).toBe(0);
    expect(process.output()).not.toMatch(/error|lost/);
  });

  test('that is stopped for long is gone; when it goes on it comes back, and what it lost is aborted', {
    timeout: 90_000,
  }, async () => {
    const { process, id, jobId } = await startProcess('sleeps', () => queue.enqueue(database.db, sleep));
    const peer = await startWorker(undefined, { frozenMs: 15_000 });
    const completed = nextEvent(peer.worker, 'completed');
    process.child.kill('SIGSTOP');
    await completed;
    expect(peer.gone).toEqual([id]);
    // Its session was there all the time.
    expect(await sessionHeld(id)).toBe(true);
    process.child.kill('SIGCONT');
    await process.printed(`lost ${jobId}`);
    await untilSession(id);
    expect(await queue.find(database.db, jobId)).toMatchObject({ state: 'completed', output: 2 });
    // It works as before.
    await peer.worker.stop();
    const { id: next } = await queue.enqueue(database.db, block, { ms: 1 });
    await until(async () => (await queue.find(database.db, next))?.state === 'completed');
    expect(await process.end('SIGTERM')).toBe(0);
  });
});

describe('a worker whose connection is lost', () => {
  test('takes its session anew on another, and nobody has declared it gone', async () => {
    const held = gate();
    const one = await startWorker(() => held.opened);
    const claimed = nextEvent(one.worker, 'claimed');
    const { id: jobId } = await queue.enqueue(database.db, sleep);
    await claimed;
    const peer = await startWorker();
    const pid = await sessionPid(one.id);
    for (let round = 0; round < 3; round++) {
      const before = await sessionPid(one.id);
      await terminate(before);
      await until(async () => (await sessionHeld(one.id)) && (await sessionPid(one.id)) !== before);
      await untilSession(one.id);
    }
    expect(await sessionPid(one.id)).not.toBe(pid);
    await untilSeen(peer.id, 2);
    held.open();
    await until(async () => (await queue.find(database.db, jobId))?.state === 'completed');
    expect(await queue.find(database.db, jobId)).toMatchObject({ attempt: 1 });
    expect([one.gone, one.lost, peer.gone]).toEqual([[], [], []]);
  });

  test('says so as soon as it is back, also when its pool could not say meanwhile that it lives', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 4 });
    onTestFinished(() => pool.end());
    const one = await startWorker(undefined, { db: drizzle({ client: pool }) as unknown as Database });
    // From here on no heartbeat is due for four seconds.
    await untilSeen(one.id);
    const [before, pid] = [await workerRow(one.id), await sessionPid(one.id)];
    const query = pool.query;
    Object.assign(pool, { query: () => Promise.reject(new Error('the network is away')) });
    const failed = nextEvent(one.worker, 'error', ({ during }) => during === 'the heartbeat');
    await terminate(pid);
    await failed;
    pool.query = query;
    await until(async () => (await sessionHeld(one.id)) && (await sessionPid(one.id)) !== pid);
    // Otherwise peers that look only before and after this session take the two losses for one.
    const shown = async () => (await workerRow(one.id))?.seen !== before?.seen;
    await until(shown, { timeoutMs: 2_500 });
  });

  test('and cannot be had anew is known by its heartbeat, until it can', async () => {
    const one = await startWorker();
    const peer = await startWorker(undefined, { reconnectMs: 1_000 });
    const [blocker] = await database.connect();
    // Waits for the lock to be free, and then keeps it from the worker; to peers it looks free.
    const blocked = blocker?.db.execute(sql`select pg_advisory_lock_shared(${key(one.id)})`).then(() => true);
    const pid = await sessionPid(one.id);
    await terminate(pid);
    expect(await blocked).toBe(true);
    await until(async () => (await workerRow(one.id))?.session === false);
    await untilSeen(one.id);
    await untilSeen(peer.id);
    expect(peer.gone).toEqual([]);
    await blocker?.db.execute(sql`select pg_advisory_unlock_all()`);
    await untilSession(one.id);
    expect(await sessionHeld(one.id)).toBe(true);
    expect(peer.gone).toEqual([]);
  });
});

describe('a session', () => {
  test('is kept while a stopping worker lets its handlers finish, and gone with it', async () => {
    const held = gate();
    const one = await startWorker(() => held.opened);
    const claimed = nextEvent(one.worker, 'claimed');
    const { id: jobId } = await queue.enqueue(database.db, sleep);
    await claimed;
    const peer = await startWorker(undefined, { reconnectMs: 1_000 });
    const stopping = one.worker.stop();
    await untilSeen(one.id);
    expect(await sessionHeld(one.id)).toBe(true);
    held.open();
    await stopping;
    expect(await queue.find(database.db, jobId)).toMatchObject({ state: 'completed', attempt: 1 });
    expect(await workerRow(one.id)).toBeUndefined();
    await until(async () => !(await sessionHeld(one.id)));
    expect(peer.gone).toEqual([]);
  });

  test('shows that the worker lives also when the app holds all connections of its pool', async () => {
    const db = openPool(2);
    const one = await startWorker(undefined, { db });
    const over = gate();
    const holding = [1, 2].map(() => db.transaction(() => over.opened));
    await untilSeen(one.id, 2);
    over.open();
    await Promise.all(holding);
  });

  test('is nothing that a worker has which does not listen', async () => {
    const one = await startWorker(undefined, { listen: false });
    await untilSeen(one.id);
    expect(await workerRow(one.id)).toMatchObject({ session: false });
    expect(await sessionHeld(one.id)).toBe(false);
  });
});

test('an idle worker sends at most 0.7 statements a second about who lives', async () => {
  const { db, statements } = openPostgresJs();
  const one = await startWorker(undefined, { db });
  await untilSeen(one.id);
  const before = statements.length;
  const checks = () => statements.slice(before).filter(({ text }) => text.includes('pg_try_advisory'));
  await until(() => checks().length >= 6);
  const [first, last] = [checks()[0]?.atMs ?? 0, checks()[5]?.atMs ?? 0];
  expect((1_000 * 5) / (last - first)).toBeLessThan(0.7);
  // One and the same statement says it all.
  const others = statements.slice(before).filter(({ text }) => !text.includes('pg_try_advisory'));
  expect(
    others.filter(({ text }) => text.includes('"queue_workers" as w (') || /pg_notify/.test(text)),
  ).toEqual([]);
});

test('while a lost session is being replaced, the row names a session all the time', async () => {
  const { id } = await startWorker();
  await database.client.unsafe(`
    create table shown (at serial, session int);
    create function note() returns trigger language plpgsql as
      $$ begin insert into shown (session) values (new.session); return new; end $$;
    create trigger note before update on queue_workers for each row execute function note()`);
  onTestFinished(
    async () => void (await database.client.unsafe('drop function note cascade; drop table shown')),
  );
  const session = async () =>
    (
      await database.client<{ session: number | null }[]>`select session from queue_workers where id = ${id}`
    )[0]?.session;
  const before = await session();
  await database.client`select pg_terminate_backend(${before ?? 0}, 5000)`;
  await until(async () => (await session()) !== before);
  expect(await session()).not.toBeNull();
  const rows = await database.client<{ session: number | null }[]>`select session from shown order by at`;
  expect(rows.map(({ session }) => session)).not.toContain(null);
});
