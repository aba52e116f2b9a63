import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { beatWorker } from '../../src/core/queries/presence/beat-worker.ts';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { removeWorker } from '../../src/core/queries/presence/remove-worker.ts';
import type { Runner } from '../../src/core/sql/executor.ts';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { findLeases } from '../../src/features/limits/queries/find-leases.ts';
import { type LeaseWish, takeLease } from '../../src/features/limits/queries/take-lease.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { limitTables as tables } from './support/jobs.ts';
import { begin, commit, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_workers, queue_limits, queue_usage`;
});

const limit = { queue: 'q', kind: '' };

async function addWorkers(count: number): Promise<number[]> {
  const ids = await Promise.all(
    Array.from({ length: count }, (_, n) =>
      registerWorker(database.db, tables, { name: `w${n}`, queues: ['q'] }),
    ),
  );
  return ids.sort((a, b) => a - b);
}

function wish(workerId: number, want: number, more: Partial<LeaseWish> = {}): LeaseWish {
  return { ...limit, workerId, declared: 10, running: 0, want, wants: want, era: 0, ...more };
}

function take(workerId: number, want: number, more: Partial<LeaseWish> = {}, db: Runner = database.db) {
  return takeLease(db, tables, wish(workerId, want, more));
}

/** On Citus there is no limit to how long a take waits. */
const patientTables = inContext(tables, { server: { distributed: true, identified: true } });

function takePatiently(db: Runner, workerId: number, want: number) {
  return takeLease(db, patientTables, wish(workerId, want));
}

async function leases(): Promise<Record<string, number[]>> {
  const [row] = await database.client`select leases from queue_usage`;
  return row?.leases;
}

describe('one worker', () => {
  test('gets what it wants up to the limit, and gives back', async () => {
    const [a = 0] = await addWorkers(1);
    expect(await take(a, 3)).toEqual({
      limit: 10,
      has: 3,
      total: 3,
      sharing: 1,
      leastLacking: undefined,
      successors: [],
    });
    expect(await take(a, 12)).toMatchObject({ has: 10 });
    expect(await leases()).toEqual({ [a]: [10, 12, 0] });
    expect(await take(a, 4)).toMatchObject({ has: 4 });
    expect(await take(a, 0)).toMatchObject({ has: 0, sharing: 0 });
    expect(await leases()).toEqual({});
  });

  test('keeps to what was set, in the place of what is declared', async () => {
    const [a = 0] = await addWorkers(1);
    await database.client`insert into queue_limits (queue, concurrency) values ('q', 2), ('other', 1)`;
    expect(await take(a, 5)).toMatchObject({ limit: 2, has: 2 });
    await database.client`update queue_limits set concurrency = null`;
    expect(await take(a, 5)).toMatchObject({ limit: 10, has: 5 });
    expect(await take(a, 5, { declared: null })).toMatchObject({ limit: undefined });
  });

  test('has leases of kinds apart from those of the queue', async () => {
    const [a = 0] = await addWorkers(1);
    await take(a, 3);
    expect(await take(a, 9, { kind: 'k', declared: 2 })).toMatchObject({ limit: 2, has: 2 });
    expect(
      await findLeases(database.db, tables, a, [
        { queue: 'q', kind: 'k', declared: 2 },
        { queue: 'nobody', kind: '', declared: null },
        { queue: 'q', kind: '', declared: 10 },
      ]),
    ).toEqual([
      { limit: 2, has: 2, total: 2, sharing: 1, leastLacking: undefined },
      { limit: undefined, has: 0, total: 0, sharing: 0, leastLacking: undefined },
      { limit: 10, has: 3, total: 3, sharing: 1, leastLacking: undefined },
    ]);
  });

  test('never has less than what runs, and gets no more while a lower limit is exceeded', async () => {
    const [a = 0, b = 0] = await addWorkers(2);
    await take(a, 6);
    await take(b, 4);
    await database.client`insert into queue_limits (queue, concurrency) values ('q', 5)`;
    expect(await take(a, 6, { running: 6 })).toMatchObject({ limit: 5, has: 6 });
    expect(await take(b, 5, { running: 4 })).toMatchObject({ has: 4 });
    // It returns after it was declared gone.
    expect(await take(a, 2, { running: 2, era: 1 })).toMatchObject({ has: 2 });
    expect(await take(a, 3, { running: 2, era: 1 })).toMatchObject({ has: 2 });
    await take(b, 2, { running: 2 });
    expect(await take(a, 3, { running: 2, era: 1 })).toMatchObject({ has: 3 });
  });

  test('that is not registered gets nothing, and writes nothing', async () => {
    expect(await take(77, 3)).toBe(undefined);
    expect(await database.client`select from queue_usage`).toHaveLength(0);
    const [a = 0] = await addWorkers(1);
    await take(a, 3);
    expect(await take(77, 3)).toBe(undefined);
    expect(await leases()).toEqual({ [a]: [3, 3, 0] });
  });

  test('writes nothing when nothing changes', async () => {
    const [a = 0] = await addWorkers(1);
    await take(a, 3);
    const version = async () => (await database.client`select xmin::text from queue_usage`)[0]?.xmin;
    const before = await version();
    await take(a, 3);
    expect(await version()).toBe(before);
  });
});

describe('several workers', () => {
  test('share the limit: who lacks some is told of to those who have more than their share', async () => {
    const [a = 0, b = 0, c = 0] = await addWorkers(3);
    await take(a, 10);
    const share = { limit: 10, total: 10, sharing: 2, successors: [] };
    expect(await take(b, 5)).toEqual({ ...share, has: 0, leastLacking: undefined });
    expect(await take(a, 10)).toEqual({ ...share, has: 10, leastLacking: 0 });
    expect(await take(a, 5, { wants: 10 })).toMatchObject({ has: 5 });
    // What it let go of is not for itself.
    expect(await take(a, 10)).toMatchObject({ has: 5 });
    expect(await take(c, 10)).toMatchObject({ has: 4, sharing: 3 });
    expect(await take(b, 5)).toMatchObject({ has: 1 });
  });

  test('what one gives back is for those that have the fewest: one for each slot, from the next id on', async () => {
    const [a = 0, b = 0, c = 0, d = 0] = await addWorkers(4);
    const few = { declared: 3, wants: 5 };
    for (const worker of [b, c, d]) await take(worker, 1, few);
    await take(a, 1, few);
    // It keeps all that it has: nothing to leave to others.
    expect(await take(c, 1, few)).toMatchObject({ has: 1, successors: [] });
    expect(await take(c, 0, few)).toMatchObject({ has: 0, successors: [a] });
    expect(await take(a, 1, few)).toMatchObject({ has: 1 });
    // Behind itself in the order of the ids, then from the start: one that has none goes before those with one.
    expect(await take(d, 0, few)).toMatchObject({ has: 0, successors: [c] });
    expect(await take(c, 1, few)).toMatchObject({ has: 1 });
    expect(await take(a, 0, few)).toMatchObject({ has: 0, successors: [d] });
    // This one wants nothing any more, so only others are told, and one that is gone is not.
    await take(d, 0, { declared: 3 });
    await removeWorker(database.db, tables, b);
    expect(await take(c, 0, { declared: 3 })).toMatchObject({ has: 0, successors: [a] });
  });

  test('two that give back at the same time leave their slots to two others', async () => {
    const [a = 0, b = 0, c = 0, d = 0] = await addWorkers(4);
    const few = { declared: 2, wants: 5 };
    for (const worker of [a, b, c, d]) await take(worker, 1, few);
    expect(await take(a, 0, few)).toMatchObject({ has: 0, successors: [c] });
    // The first of them has not asked yet.
    expect(await take(b, 0, few)).toMatchObject({ has: 0, successors: [c, d] });
    expect(await take(d, 1, few)).toMatchObject({ has: 1, successors: [] });
  });

  test('a successor that no longer wants its slot leaves it to the next one', async () => {
    const [a = 0, b = 0, c = 0] = await addWorkers(3);
    const few = { declared: 1, wants: 5 };
    for (const worker of [a, b, c]) await take(worker, 1, few);
    expect(await take(a, 0, { declared: 1 })).toMatchObject({ successors: [b] });
    expect(await take(b, 0, { declared: 1 })).toMatchObject({ has: 0, successors: [c] });
    expect(await take(b, 0, { declared: 1 })).toMatchObject({ has: 0, successors: [] });
    expect(await take(c, 1, few)).toMatchObject({ has: 1, successors: [] });
    // Nothing is free.
    await take(b, 1, few);
    expect(await take(b, 0, { declared: 1 })).toMatchObject({ has: 0, successors: [] });
  });

  test('nothing is left to others while more are taken than the limit has', async () => {
    const [a = 0, b = 0] = await addWorkers(2);
    await take(a, 6);
    await take(b, 6);
    expect(await take(a, 3, { declared: 2, wants: 6 })).toMatchObject({ has: 3, total: 7, successors: [] });
    expect(await take(b, 0, { declared: 2 })).toMatchObject({ has: 0, total: 3, successors: [] });
  });

  test('one that wants less than its share leaves the rest to the others', async () => {
    const [a = 0, b = 0] = await addWorkers(2);
    await take(b, 2);
    expect(await take(a, 10)).toMatchObject({ has: 8 });
  });

  test('the slots of one that is gone are free when its row is', async () => {
    const [a = 0, b = 0] = await addWorkers(2);
    await take(a, 10);
    expect(await take(b, 4)).toMatchObject({ has: 0 });
    await removeWorker(database.db, tables, a);
    expect(await take(b, 4)).toMatchObject({ has: 4, total: 4, sharing: 1, leastLacking: undefined });
    expect(await leases()).toEqual({ [b]: [4, 4, 0] });
  });

  test('20 at once never get more than there is, and all of it', async () => {
    const workers = await addWorkers(20);
    const connections = await database.connect(10);
    const round = async (wantOf: (n: number) => number) => {
      const has = await Promise.all(
        workers.map(async (worker, n) => {
          const { db } = connections[n % 10] ?? database;
          return (await takePatiently(db, worker, wantOf(n)))?.has ?? 0;
        }),
      );
      const [row] = await database.client<{ sum: number }[]>`
        select coalesce(sum((lease ->> 0)::int), 0)::int as sum from queue_usage, jsonb_each(leases) as e(w, lease)`;
      expect(has.reduce((sum, n) => sum + n, 0)).toBe(row?.sum);
      expect(row?.sum).toBeLessThanOrEqual(10);
      return row?.sum;
    };
    for (let n = 0; n < 10; n++) {
      await round((worker) => (worker * 7 + n) % 5);
      // In the first round some is left for those that lack their share.
      expect(await round((worker) => (worker * 7 + n) % 5)).toBe(10);
      expect(await round(() => 0)).toBe(0);
    }
  });
});

describe('what comes in between', () => {
  test('a take that waited for another sees what that has taken', async () => {
    const [a = 0, b = 0] = await addWorkers(2);
    await take(a, 1);
    const [first, second] = await twoBackends(database);
    await begin(first);
    await take(a, 7, {}, first.db);
    const waiting = takePatiently(second.db, b, 9);
    await untilBlocked(database, second);
    await commit(first);
    expect(await waiting).toMatchObject({ has: 3 });
    expect(await leases()).toEqual({ [a]: [7, 7, 0], [b]: [3, 9, 0] });
  });

  test('a take whose connection was lost, and which comes last, changes nothing', async () => {
    const [a = 0, b = 0] = await addWorkers(2);
    await take(a, 8);
    await take(a, 2, { era: 1 });
    await take(b, 8);
    // The one of before that is carried out late.
    expect(await take(a, 5)).toMatchObject({ has: 2 });
    expect(await leases()).toEqual({ [a]: [2, 2, 1], [b]: [8, 8, 0] });
    await take(a, 0, { era: 1 });
    await take(a, 5);
    expect(await leases()).toEqual({ [a]: [0, 0, 1], [b]: [8, 8, 0] });
  });

  test('a take that waits while its worker is removed leaves no lease behind', async () => {
    const [a = 0] = await addWorkers(1);
    await take(a, 1);
    const [first, second] = await twoBackends(database);
    await begin(first);
    await removeWorker(first.db, tables, a);
    const waiting = takePatiently(second.db, a, 5);
    await untilBlocked(database, second);
    await commit(first);
    expect(await waiting).toBe(undefined);
    expect(await leases()).toEqual({ [a]: [1, 1, 0] });
  });

  test('a removal waits for the take of that worker, and what it took is nobody’s', async () => {
    const [a = 0, b = 0] = await addWorkers(2);
    const [first, second] = await twoBackends(database);
    await begin(first);
    await take(a, 10, {}, first.db);
    const removal = removeWorker(second.db, tables, a);
    await untilBlocked(database, second);
    await commit(first);
    await removal;
    expect(await take(b, 10)).toMatchObject({ has: 10 });
  });

  test('a worker that comes back and takes again, while another has seen it gone, keeps what it took', async () => {
    const [a = 0, b = 0] = await addWorkers(2);
    await take(a, 6);
    await removeWorker(database.db, tables, a);
    const [first, second] = await twoBackends(database);
    await begin(first);
    // Locks the row, so that the other's snapshot is older than the return.
    await first.client`select from queue_usage for no key update`;
    const waiting = takePatiently(second.db, b, 10);
    await untilBlocked(database, second);
    await beatWorker(first.db, tables, { id: a, name: 'a', queues: [] });
    await take(a, 6, { running: 6, era: 1 }, first.db);
    await commit(first);
    expect(await waiting).toMatchObject({ has: 4 });
    expect(await leases()).toEqual({ [a]: [6, 6, 1], [b]: [4, 10, 0] });
  });

  test('a beat does not wait for a take, nor a take for a beat', async () => {
    const [a = 0] = await addWorkers(1);
    await take(a, 1);
    const [first, second] = await twoBackends(database);
    await begin(first);
    await take(a, 2, {}, first.db);
    expect(await beatWorker(second.db, tables, { id: a, name: 'a', queues: [] })).toBe(false);
    await commit(first);
    await begin(first);
    await beatWorker(first.db, tables, { id: a, name: 'a', queues: [] });
    expect(await take(a, 3, {}, second.db)).toMatchObject({ has: 3 });
    await commit(first);
  });

  test('an open transaction that has set the limit stops nobody', async () => {
    const [a = 0] = await addWorkers(1);
    const [first] = await twoBackends(database);
    await database.client`insert into queue_limits (queue, concurrency) values ('q', 2)`;
    await begin(first);
    await first.client`update queue_limits set concurrency = 5`;
    expect(await take(a, 5)).toMatchObject({ has: 2 });
    await commit(first);
    expect(await take(a, 5)).toMatchObject({ has: 5 });
  });

  test('a row that is locked for long fails the take', async () => {
    const [a = 0] = await addWorkers(1);
    await take(a, 1);
    const [first] = await twoBackends(database);
    await begin(first);
    await first.client`select from queue_usage for no key update`;
    await expect(take(a, 2)).rejects.toMatchObject({ cause: { code: '55P03' } });
    await commit(first);
    expect(await take(a, 2)).toMatchObject({ has: 2 });
  });

  test('the first takes of a limit, at once, make one row', async () => {
    const workers = await addWorkers(5);
    const connections = await database.connect(5);
    const has = await Promise.all(
      workers.map((worker, n) => take(worker, 3, {}, connections[n]?.db ?? database.db)),
    );
    expect(has.reduce((sum, share) => sum + (share?.has ?? 0), 0)).toBe(10);
    expect(await database.client`select from queue_usage`).toHaveLength(1);
  });
});
