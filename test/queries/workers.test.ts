import { beforeEach, describe, expect, test } from 'vitest';
import { beatWorker } from '../../src/core/queries/presence/beat-worker.ts';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { removeWorker } from '../../src/core/queries/presence/remove-worker.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, claim, clearTables, jobRow, tables } from './support/jobs.ts';
import { begin, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const worker = { name: 'host:42', queues: ['mail', `it's "odd"`] };

async function rows(): Promise<Record<string, unknown>[]> {
  return [...(await database.client`select id::int, name, queues from queue_workers order by id`)];
}

async function seenSecondsAgo(id: number): Promise<number> {
  const [row] = await database.client<{ s: number }[]>`
    select extract(epoch from clock_timestamp() - seen_at)::float8 as s from queue_workers where id = ${id}`;
  return Number(row?.s);
}

async function silence(id: number, seconds: number): Promise<void> {
  await database.client`
    update queue_workers set seen_at = clock_timestamp() - ${seconds}::float8 * interval '1 s' where id = ${id}`;
}

describe('register and remove', () => {
  test('a worker gets a row, and an id that nobody else ever gets', async () => {
    const first = await registerWorker(database.db, tables, worker);
    await removeWorker(database.db, tables, first);
    const second = await registerWorker(database.db, tables, worker);
    expect(second).toBeGreaterThan(first);
    expect(await rows()).toEqual([{ id: second, ...worker }]);
  });

  test('many at once get different ids', async () => {
    const connections = await database.connect(6);
    const ids = await Promise.all(
      connections.flatMap(({ db }) => [1, 2, 3].map(() => registerWorker(db, tables, worker))),
    );
    expect(new Set(ids).size).toBe(18);
  });

  test('removing one leaves the others, and can be repeated', async () => {
    const one = await registerWorker(database.db, tables, worker);
    const two = await registerWorker(database.db, tables, worker);
    await removeWorker(database.db, tables, one);
    await removeWorker(database.db, tables, one);
    expect(await rows()).toEqual([{ id: two, ...worker }]);
  });
});

describe('a beat', () => {
  test('says that the worker is seen now', async () => {
    const id = await registerWorker(database.db, tables, worker);
    await silence(id, 3_600);
    expect(await beatWorker(database.db, tables, { id, ...worker })).toBe(false);
    expect(await seenSecondsAgo(id)).toBeLessThan(20);
  });

  test('of a worker whose row is gone writes it anew under its id, and says so, once', async () => {
    const id = await registerWorker(database.db, tables, worker);
    await removeWorker(database.db, tables, id);
    expect(await beatWorker(database.db, tables, { id, ...worker })).toBe(true);
    expect(await beatWorker(database.db, tables, { id, ...worker })).toBe(false);
    expect(await rows()).toEqual([{ id, ...worker }]);
  });

  test('anew takes back at once what nobody has claimed yet, and not what somebody has', async () => {
    const id = await registerWorker(database.db, tables, worker);
    const peer = await registerWorker(database.db, tables, worker);
    const lost = await addJob(database.client, { workerId: id, fence: 1 });
    await removeWorker(database.db, tables, id);
    expect(await claim(database.db, { workerId: peer, fromGoneWorkers: true })).toHaveLength(1);
    const kept = await addJob(database.client, { workerId: id, fence: 1 });
    await beatWorker(database.db, tables, { id, ...worker });
    expect(await claim(database.db, { workerId: peer, fromGoneWorkers: true })).toEqual([]);
    expect(await jobRow(database.client, kept)).toMatchObject({ worker_id: id, fence: 1 });
    expect(await jobRow(database.client, lost)).toMatchObject({ worker_id: peer, fence: 2 });
  });

  test('says on which connection the worker holds its session', async () => {
    const id = await registerWorker(database.db, tables, worker);
    const session = async () => {
      const [row] = await database.client<
        { session: number | null }[]
      >`select session from queue_workers where id = ${id}`;
      return row?.session;
    };
    expect(await session()).toBeNull();
    await beatWorker(database.db, tables, { id, ...worker, session: 4_711 });
    expect(await session()).toBe(4_711);
    await beatWorker(database.db, tables, { id, ...worker, session: undefined });
    expect(await session()).toBeNull();
    await removeWorker(database.db, tables, id);
    await beatWorker(database.db, tables, { id, ...worker, session: 4_711 });
    expect(await session()).toBe(4_711);
  });

  test('waits for a removal that rolls back, and finds its row', async () => {
    const id = await registerWorker(database.db, tables, worker);
    const [one, two] = await twoBackends(database);
    await begin(one);
    await removeWorker(one.db, tables, id);
    const beating = beatWorker(two.db, tables, { id, ...worker });
    await untilBlocked(database, two);
    await rollback(one);
    expect(await beating).toBe(false);
  });
});
