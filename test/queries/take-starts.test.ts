import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { setLimit } from '../../src/features/limits/queries/set-limit.ts';
import { type StartsWish, takeStarts } from '../../src/features/limits/queries/take-starts.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { groupedTables } from './support/groups.ts';
import { limitTables as tables } from './support/jobs.ts';
import { begin, commit, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_workers, queue_limits, queue_usage`;
});

const HOUR_MS = 3_600_000;
const limit = { queue: 'q', kind: '' };

const addWorker = () => registerWorker(database.db, tables, { name: 'w', queues: ['q'] });

function wish(workerId: number, want: number, more: Partial<StartsWish> = {}): StartsWish {
  const declared = { limit: 10, perMs: HOUR_MS };
  return { ...limit, workerId, declared, want, least: 1, withinMs: 25, unspent: {}, ...more };
}

/** On Citus there is no limit to how long a statement waits. */
const patientTables = inContext(tables, { server: { distributed: true, identified: true } });
const groupTables = groupedTables();

const take = (workerId: number, want: number, more: Partial<StartsWish> = {}, db = database.db) =>
  takeStarts(db, tables, wish(workerId, want, more));

describe('starts of a rate', () => {
  test('are granted up to the limit, and then it is told when some are free', async () => {
    const worker = await addWorker();
    const rate = { limit: 10, perMs: HOUR_MS };
    expect(await take(worker, 4)).toMatchObject({ rate, granted: 4, left: 6 });
    const last = await take(worker, 9);
    expect(last).toMatchObject({ granted: 6, left: 0, freeThen: 10 });
    // A window after the end of the part in which they may begin.
    expect(last?.freeInMs).toBeGreaterThan(HOUR_MS);
    expect(last?.freeInMs).toBeLessThan(HOUR_MS * (1 + 2 / 20));
    expect(await take(worker, 1)).toMatchObject({ granted: 0, left: 0 });
  });

  test('are free again when a window has passed', async () => {
    const worker = await addWorker();
    const declared = { limit: 3, perMs: 200 };
    const takenMs = performance.now();
    expect(await take(worker, 3, { declared })).toMatchObject({ granted: 3 });
    await until(async () => (await take(worker, 3, { declared }))?.granted === 3);
    expect(performance.now() - takenMs).toBeGreaterThan(200);
  });

  test('that were not spent can be given back, those of another part cannot', async () => {
    const worker = await addWorker();
    const { part = '' } = (await take(worker, 10)) ?? {};
    expect(await take(worker, 1, { unspent: { '1': 5 } })).toMatchObject({ granted: 0 });
    expect(await take(worker, 8, { unspent: { [part]: 4 } })).toMatchObject({ granted: 4, left: 0 });
    // Never more than were taken.
    expect(await take(worker, 0, { unspent: { [part]: 99 } })).toMatchObject({ granted: 0, left: 10 });
  });

  test('are none where fewer are free than are of use; more than the limit count as the limit', async () => {
    const worker = await addWorker();
    expect(await take(worker, 6)).toMatchObject({ granted: 6 });
    expect(await take(worker, 5, { least: 5 })).toMatchObject({ granted: 0, left: 4, freeThen: 10 });
    await database.client`truncate queue_usage`;
    expect(await take(worker, 25, { least: 25 })).toMatchObject({ granted: 10 });
  });

  test('go by what was set at run time, also for those that were taken before', async () => {
    const worker = await addWorker();
    expect(await take(worker, 6)).toMatchObject({ granted: 6 });
    const set = (max: number) => {
      const override = { rate: { limit: max, perMs: HOUR_MS } };
      return setLimit(database.db, groupTables, { ...limit, group: '', override }, undefined);
    };
    await set(4);
    expect(await take(worker, 1)).toMatchObject({ rate: { limit: 4 }, granted: 0, left: -2 });
    await set(7);
    expect(await take(worker, 5)).toMatchObject({ rate: { limit: 7 }, granted: 1 });
  });

  test('a worker that is not registered gets none', async () => {
    expect(await take(4_711, 1)).toBe(undefined);
    expect(await database.client`select from queue_usage`).toEqual([]);
  });

  test('any number of workers that ask at once get no more than the limit', async () => {
    const workers = await Promise.all(Array.from({ length: 8 }, addWorker));
    const grants = await Promise.all(workers.flatMap((worker) => [take(worker, 3), take(worker, 3)]));
    expect(grants.reduce((sum, grant) => sum + (grant?.granted ?? 0), 0)).toBe(10);
  });

  test('one that has waited for another counts what that has taken', async () => {
    const worker = await addWorker();
    await take(worker, 1);
    const [first, second] = await twoBackends(database);
    await begin(first);
    expect(await take(worker, 7, {}, first.db)).toMatchObject({ granted: 7 });
    const waiting = takeStarts(second.db, patientTables, wish(worker, 7));
    await untilBlocked(database, second);
    await commit(first);
    expect(await waiting).toMatchObject({ granted: 2 });
  });
});
