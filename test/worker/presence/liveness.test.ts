import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import {
  database,
  gate,
  key,
  openPool,
  queue,
  sessionHeld,
  sessionPid,
  sleep,
  startProcess,
  startWorker,
  terminate,
  untilSeen,
  untilSession,
  workerRow,
} from './observed-workers.ts';

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
