import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { gate } from '../../support/gate.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import {
  database,
  key,
  queue,
  sessionHeld,
  sessionPid,
  sleep,
  startWorker,
  terminate,
  untilSeen,
  untilSession,
  useObservedWorkers,
  workerRow,
} from './observed-workers.ts';

useObservedWorkers();

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
    pool.on('error', () => {});
    onTestFinished(() => pool.end());
    const one = await startWorker(undefined, { db: drizzle({ client: pool }) as unknown as Database });
    // From here on no heartbeat is due for four seconds.
    await untilSeen(one.id);
    const [before, pid] = [await workerRow(one.id), await sessionPid(one.id)];
    const { connect } = pool;
    Object.assign(pool, { connect: () => Promise.reject(new Error('the network is away')) });
    const failed = nextEvent(one.worker, 'error', ({ during }) => during === 'the heartbeat');
    await terminate(pid);
    await failed;
    pool.connect = connect;
    await until(async () => (await sessionHeld(one.id)) && (await sessionPid(one.id)) !== pid);
    // Otherwise peers that look only before and after this session take the two losses for one.
    const shown = async () => (await workerRow(one.id))?.seen !== before?.seen;
    expect(await runningMsUntil(until(shown))).toBeLessThan(2_500);
  });

  test('and cannot be had anew is known by its heartbeat, until it can', async () => {
    const one = await startWorker();
    const peer = await startWorker();
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
