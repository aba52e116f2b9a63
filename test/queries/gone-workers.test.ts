import { sql } from 'drizzle-orm';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { beatWorker } from '../../src/core/queries/presence/beat-worker.ts';
import { checkWorkers } from '../../src/core/queries/presence/check-workers.ts';
import { lockSession } from '../../src/core/queries/presence/lock-session.ts';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { removeGoneWorkers } from '../../src/core/queries/presence/remove-gone-workers.ts';
import { removeWorker } from '../../src/core/queries/presence/remove-worker.ts';
import { unlockSession } from '../../src/core/queries/presence/unlock-session.ts';
import type { QueueTables } from '../../src/core/schema/index.ts';
import { type Executor, queryRows } from '../../src/core/sql/executor.ts';
import { inContext, isDistributed } from '../../src/core/sql/statement-context.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { clearTables, tables as plain } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

/** On Citus the rows are read, and the locks tested, by statements of their own. */
const places: readonly (readonly [string, QueueTables])[] = [
  ['', plain],
  [', on Citus', inContext(plain, { server: { distributed: true, identified: true } })],
  [
    ', where servers are known by their start',
    inContext(plain, { server: { distributed: false, identified: false } }),
  ],
];
let tables: QueueTables = plain;

beforeEach(() => clearTables(database.client));

/** As if the server had been up for long: it may just have been started for these tests. */
const limits = { silentMs: 30_000, frozenMs: 60_000, startRespiteMs: 0 };

/** No server's process has this id. */
const NOBODY = 2_147_483_647;

/** A worker that was seen so many seconds ago. Nobody holds its session lock, whatever its row says. */
async function addWorker(
  name: string,
  {
    session = false,
    secondsAgo = 0,
  }: { readonly session?: number | boolean; readonly secondsAgo?: number } = {},
): Promise<number> {
  const id = await registerWorker(database.db, tables, { name, queues: [] });
  const pid = session === true ? NOBODY : session || null;
  await database.client`
    update queue_workers set session = ${pid}, seen_at = clock_timestamp() - ${secondsAgo}::float8 * interval '1 s'
    where id = ${id}`;
  return id;
}

async function checkAs(
  id: number,
  { beat = false, db = database.db as Executor, session }: CheckOptions = {},
) {
  return checkWorkers(db, tables, { worker: { id, name: 'me', queues: [], session }, beat, limits });
}

interface CheckOptions {
  readonly beat?: boolean;
  readonly db?: Executor;
  readonly session?: number;
}

async function nodeHere(): Promise<string> {
  const [row] = await database.client`select system_identifier::text as node from pg_control_system()`;
  return row?.node;
}

/** As {@link checkAs}, as somebody who is not registered. */
async function seenGone(db: Executor = database.db) {
  return (await checkAs(999_999, { db })).gone;
}

async function remove(id: number, seen?: string, db: Executor = database.db): Promise<string[]> {
  const found = seen ?? (await seenGone()).find((worker) => worker.id === id)?.seen;
  if (found === undefined) throw new Error(`the worker ${id} does not look gone`);
  const removed = await removeGoneWorkers(db, tables, [{ id, seen: found }], limits);
  return removed.map(({ name }) => name);
}

/** Every worker, as a check would name it that has seen it gone. */
async function seenBy(db: Executor): Promise<{ id: number; seen: string }[]> {
  const rows = await queryRows(
    db,
    tables,
    sql`select id, extract(epoch from seen_at)::text as seen from queue_workers`,
  );
  return rows.map(({ id, seen }) => ({ id: Number(id), seen: String(seen) }));
}

async function names(): Promise<string[]> {
  const rows = await database.client<{ name: string }[]>`select name from queue_workers order by id`;
  return rows.map(({ name }) => name);
}

async function serverUpSeconds(): Promise<number> {
  const [row] = await database.client<{ seconds: number }[]>`
    select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 as seconds`;
  return Number(row?.seconds);
}

/** A time of the database, with its microseconds. */
const SECONDS = /^\d+\.\d{6}$/;

/** By these whoever is not seen at this very moment is gone. */
const impatient = { silentMs: 1, frozenMs: 1, startRespiteMs: 0 };

describe('the session lock', () => {
  test('is one connection’s until it is given back, and can be had by no other', async () => {
    const id = await addWorker('one');
    const other = await addWorker('other');
    const [one, two] = await twoBackends(database);
    expect(await lockSession(one.db, tables, id)).toEqual({ pid: one.pid, node: await nodeHere() });
    expect(await lockSession(two.db, tables, id)).toBeUndefined();
    expect(await lockSession(two.db, tables, other)).toMatchObject({ pid: expect.any(Number) });
    await unlockSession(one.db, tables, id);
    expect(await lockSession(two.db, tables, id)).toMatchObject({ pid: expect.any(Number) });
  });

  test('makes the server watch over the connection', async () => {
    const [one] = await twoBackends(database);
    await lockSession(one.db, tables, await addWorker('one'));
    const [row] = await one.client`
      select current_setting('tcp_keepalives_idle') as idle, current_setting('tcp_keepalives_interval') as interval,
        current_setting('tcp_keepalives_count') as count, current_setting('tcp_user_timeout') as timeout`;
    expect(row).toEqual({ idle: '5', interval: '2', count: '3', timeout: '10000' });
  });

  test('of tables with the same name in another schema is another', async () => {
    const [one, two] = await twoBackends(database);
    await database.client`create schema tenant`;
    await database.client`create table tenant.queue_workers (like queue_workers)`;
    await two.client`set search_path = tenant, public`;
    expect(await lockSession(one.db, tables, 424_242)).toMatchObject({ pid: expect.any(Number) });
    expect(await lockSession(two.db, tables, 424_242)).toMatchObject({ pid: expect.any(Number) });
    await database.client`drop schema tenant cascade`;
  });
});

describe.each(places)('a check%s', (_, kind) => {
  beforeAll(() => {
    tables = kind;
  });

  test('finds lost whose session lock is free, and not who holds it', async () => {
    const lost = await addWorker('lost', { session: true });
    const alive = await addWorker('alive', { session: true });
    const [one] = await twoBackends(database);
    await lockSession(one.db, tables, alive);
    expect(await seenGone()).toEqual([
      { id: lost, seen: expect.stringMatching(SECONDS), why: 'lost', session: NOBODY },
    ]);
  });

  test('on the connection that holds the locks of several finds none of them lost, and elsewhere neither', async () => {
    const [shared, other] = await twoBackends(database);
    const me = await addWorker('me', { session: shared.pid });
    const neighbour = await addWorker('neighbour', { session: shared.pid });
    for (const id of [me, neighbour]) await lockSession(shared.db, tables, id);
    expect((await checkAs(me, { db: shared.db })).gone).toEqual([]);
    expect((await checkAs(me, { db: other.db })).gone).toEqual([]);
    expect(await removeGoneWorkers(shared.db, tables, await seenBy(shared.db), limits)).toEqual([]);
    // It counts as one connection that may die.
    expect(await checkAs(me, { db: shared.db })).toMatchObject({ workers: 1 });
    await unlockSession(shared.db, tables, neighbour);
    for (const { db } of [shared, other])
      expect((await checkAs(me, { db })).gone).toMatchObject([{ id: neighbour, why: 'lost' }]);
  });

  test('is not deceived by a process id that somebody else has by now', async () => {
    const [one] = await twoBackends(database);
    const dead = await addWorker('dead', { session: one.pid });
    const me = await addWorker('me', { session: one.pid });
    await lockSession(one.db, tables, me);
    expect((await checkAs(me, { db: one.db })).gone).toMatchObject([{ id: dead, why: 'lost' }]);
    expect(await remove(dead, undefined, one.db)).toEqual(['dead']);
  });

  test('trusts no lock of a worker whose session is on another node', async () => {
    const id = await addWorker('elsewhere', { session: true });
    expect(await seenGone()).toMatchObject([{ id, why: 'lost' }]);
    const seen = await seenBy(database.db);
    await database.client`update queue_workers set node = 'another'`;
    expect(await seenGone()).toEqual([]);
    expect(await removeGoneWorkers(database.db, tables, seen, limits)).toEqual([]);
    // By its silence it is known.
    expect(await removeGoneWorkers(database.db, tables, seen, impatient)).toEqual([
      { id, name: 'elsewhere' },
    ]);
  });

  test('names the node by which a session of another is told from one of its own', async () => {
    const [one] = await twoBackends(database);
    const id = await addWorker('one');
    const held = await lockSession(one.db, tables, id);
    await beatWorker(one.db, tables, { id, name: 'one', queues: [], session: held?.pid, node: held?.node });
    expect(await seenGone()).toEqual([]);
    await unlockSession(one.db, tables, id);
    expect(await seenGone()).toMatchObject([{ id, why: 'lost' }]);
  });

  test('does not touch the lock of a worker without a session', async () => {
    const id = await addWorker('new');
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await seenGone(one.db)).toEqual([]);
    expect(await lockSession(two.db, tables, id)).toMatchObject({ pid: expect.any(Number) });
    await commit(one);
  });

  test('by two at the same time finds the same', async () => {
    const lost = await addWorker('lost', { session: true });
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await seenGone(one.db)).toMatchObject([{ id: lost, why: 'lost' }]);
    expect(await seenGone(two.db)).toMatchObject([{ id: lost, why: 'lost' }]);
    // Meanwhile the worker itself cannot have its lock, and must try again.
    expect(await lockSession(two.db, tables, lost)).toBeUndefined();
    await commit(one);
    expect(await lockSession(two.db, tables, lost)).toMatchObject({ pid: expect.any(Number) });
    expect(await seenGone(one.db)).toEqual([]);
  });

  test('says how many there are, and when the one that checks was registered', async () => {
    const id = await addWorker('me');
    await addWorker('other');
    const first = await checkAs(id);
    expect(first).toEqual({
      workers: 2,
      crew: isDistributed(tables) ? 1 : 2,
      startedAt: expect.stringMatching(SECONDS),
      unlocked: false,
      pid: expect.any(Number),
      serverStartedAt: expect.stringMatching(SECONDS),
      serverMs: expect.any(Number),
      gone: [],
    });
    expect(await checkAs(id, { beat: true })).toMatchObject({ workers: 2, startedAt: first.startedAt });
    await removeWorker(database.db, tables, id);
    expect(await checkAs(id)).toMatchObject({ workers: 1, startedAt: undefined });
    expect(await checkAs(id, { beat: true })).toMatchObject({ workers: 1, startedAt: undefined });
    // The beat has registered it anew.
    const anew = await checkAs(id);
    expect(anew).toMatchObject({ workers: 2, startedAt: expect.stringMatching(SECONDS) });
    expect(anew.startedAt).not.toBe(first.startedAt);
  });

  test('that beats says that the worker is seen now, and whether it holds its session', async () => {
    const id = await addWorker('me', { secondsAgo: 20 });
    await checkAs(id);
    const row = async () => {
      const [row] = await database.client`
        select session, seen_at > clock_timestamp() - interval '10 s' as fresh from queue_workers where id = ${id}`;
      return row;
    };
    expect(await row()).toEqual({ session: null, fresh: false });
    await checkAs(id, { beat: true, session: NOBODY });
    expect(await row()).toEqual({ session: NOBODY, fresh: true });
  });

  test('tells a worker that its own lock is free, but never that it is gone', async () => {
    const id = await addWorker('me', { session: true, secondsAgo: 3_600 });
    expect(await checkAs(id)).toMatchObject({ unlocked: true, gone: [] });
    const [one] = await twoBackends(database);
    await lockSession(one.db, tables, id);
    expect(await checkAs(id)).toMatchObject({ unlocked: false, gone: [] });
    // The one that holds it can always have it, until the row names this connection.
    expect(await checkAs(id, { db: one.db })).toMatchObject({ unlocked: true, pid: one.pid });
    await checkAs(id, { db: one.db, beat: true, session: one.pid });
    expect(await checkAs(id, { db: one.db })).toMatchObject({ unlocked: false, pid: one.pid });
    expect(await checkAs(id)).toMatchObject({ unlocked: false });
  });

  test('finds who was not seen for long: sooner without a session than with one', async () => {
    const [one] = await twoBackends(database);
    const silent = await addWorker('silent', { secondsAgo: 3_600 });
    const ended = await addWorker('ended', { session: true, secondsAgo: 3_600 });
    const frozen = await addWorker('frozen', { session: true, secondsAgo: 3_600 });
    await lockSession(one.db, tables, frozen);
    const why = async (limits: { silentMs: number; frozenMs: number }) => {
      const worker = { id: 999_999, name: 'me', queues: [] };
      const { gone } = await checkWorkers(database.db, tables, {
        worker,
        beat: false,
        limits: { ...limits, startRespiteMs: 3_600_000 },
      });
      return Object.fromEntries(gone.map(({ id, why }) => [id, why]));
    };
    const hour = 3_600_000;
    expect(await why({ silentMs: 1, frozenMs: 2 * hour })).toEqual({ [silent]: 'silent', [ended]: 'silent' });
    expect(await why({ silentMs: 2 * hour, frozenMs: 1 })).toEqual({ [frozen]: 'frozen' });
    expect(await why({ silentMs: 2 * hour, frozenMs: 2 * hour })).toEqual({});
  });

  test('takes nobody for silent, or lost, just after the server’s start', async () => {
    const up = await serverUpSeconds();
    await addWorker('silent', { secondsAgo: up + 7_200 });
    await addWorker('lost', { session: true, secondsAgo: up + 7_200 });
    const worker = { id: 999_999, name: 'me', queues: [] };
    const seen = async (seconds: number) => {
      const ms = seconds * 1_000;
      const limits = { silentMs: ms, frozenMs: ms, startRespiteMs: ms };
      return (await checkWorkers(database.db, tables, { worker, beat: false, limits })).gone.length;
    };
    expect(await seen(up + 3_600)).toBe(0);
    expect(await seen(0.001)).toBe(2);
  });
});

describe.each(places.filter(([, kind]) => !isDistributed(kind)))('removing gone workers%s', (_, kind) => {
  beforeAll(() => {
    tables = kind;
  });

  test('removes those that were seen gone, and answers them', async () => {
    const lost = await addWorker('lost', { session: true });
    await addWorker('also lost', { session: true });
    expect(await remove(lost)).toEqual(['lost']);
    expect(await names()).toEqual(['also lost']);
  });

  test('leaves one that has its session back', async () => {
    const id = await addWorker('back', { session: true });
    const [one] = await twoBackends(database);
    const [found] = await seenGone();
    await lockSession(one.db, tables, id);
    expect(await remove(id, found?.seen)).toEqual([]);
    await unlockSession(one.db, tables, id);
    expect(await remove(id, found?.seen)).toEqual(['back']);
  });

  test('leaves one that has shown itself since, though its lock is still free', async () => {
    const id = await addWorker('back', { session: true });
    const [found] = await seenGone();
    await beatWorker(database.db, tables, { id, name: 'back', queues: [], session: NOBODY });
    expect(await remove(id, found?.seen)).toEqual([]);
    expect(await names()).toEqual(['back']);
  });

  test('leaves one that is not gone, even if its seen_at is as given', async () => {
    const id = await addWorker('alive', { secondsAgo: 1 });
    const [row] = await database.client<{ seen: string }[]>`
      select extract(epoch from seen_at)::text as seen from queue_workers`;
    expect(await remove(id, row?.seen)).toEqual([]);
    expect(await removeGoneWorkers(database.db, tables, [{ id, seen: row?.seen ?? '' }], impatient)).toEqual([
      { id, name: 'alive' },
    ]);
  });

  test('skips one that is just being beaten, without waiting', async () => {
    const id = await addWorker('slow', { session: true });
    const [found] = await seenGone();
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await beatWorker(one.db, tables, { id, name: 'slow', queues: [] })).toBe(false);
    expect(await remove(id, found?.seen, two.db)).toEqual([]);
    await rollback(one);
    expect(await remove(id, found?.seen, two.db)).toEqual(['slow']);
  });

  test('two peers at once remove one once', async () => {
    const id = await addWorker('lost', { session: true });
    const [found] = await seenGone();
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await remove(id, found?.seen, one.db)).toEqual(['lost']);
    expect(await remove(id, found?.seen, two.db)).toEqual([]);
    await commit(one);
    expect(await names()).toEqual([]);
  });

  test('holds up the worker’s own beat, which then writes the row anew', async () => {
    const id = await addWorker('lost', { session: true });
    const [one, two] = await twoBackends(database);
    const [found] = await seenGone();
    await begin(one);
    expect(await remove(id, found?.seen, one.db)).toEqual(['lost']);
    // Not before the removal is over either.
    expect(await lockSession(two.db, tables, id)).toBeUndefined();
    const beating = beatWorker(two.db, tables, { id, name: 'lost', queues: [] });
    await untilBlocked(database, two);
    await commit(one);
    expect(await beating).toBe(true);
    expect(await names()).toEqual(['lost']);
    expect(await lockSession(two.db, tables, id)).toMatchObject({ pid: expect.any(Number) });
  });
});

test('on Citus, where it may wait for a beat, removing looks again as well', async () => {
  tables = inContext(plain, { server: { distributed: true, identified: true } });
  const gone = await addWorker('gone', { session: true });
  const shown = await addWorker('has shown itself', { session: true });
  const back = await addWorker('has its session back', { session: true });
  const seen = await seenBy(database.db);
  const [one] = await twoBackends(database);
  await lockSession(one.db, tables, back);
  await beatWorker(database.db, tables, { id: shown, name: 'has shown itself', queues: [], session: NOBODY });
  expect(await removeGoneWorkers(database.db, tables, seen, limits)).toEqual([{ id: gone, name: 'gone' }]);
  tables = plain;
});

test('a check counts the workers that serve the same queues and kinds', async () => {
  tables = plain;
  const [one] = await Promise.all([
    registerWorker(database.db, plain, { name: 'one', queues: ['a', 'b'] }),
    registerWorker(database.db, plain, { name: 'two', queues: ['a', 'b'] }),
    registerWorker(database.db, plain, { name: 'of fewer queues', queues: ['a'] }),
    registerWorker(database.db, plain, { name: 'of other kinds', queues: ['a', 'b'], kinds: ['k'] }),
  ]);
  expect(await checkAs(one)).toMatchObject({ workers: 4, crew: 2 });
  expect(await checkAs(999_999)).toMatchObject({ workers: 4, crew: 1 });
});
