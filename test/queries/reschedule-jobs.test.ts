import { beforeEach, describe, expect, test } from 'vitest';
import type { Reschedule } from '../../src/core/job/transition.ts';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import type { Holder } from '../../src/core/sql/fence.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { addJob, addJobs, claim, clearTables, idsOf, jobRow, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const retry: Reschedule = {
  type: 'reschedule',
  delayMs: 60_000,
  attempt: 1,
  error: { attempt: 1, name: 'Error', message: 'no' },
};
const giveBack: Reschedule = { type: 'reschedule', delayMs: null, attempt: 0, error: null };

/** Puts one job of queue `q` back as worker 1; answers whether that wrote anything. */
async function reschedule(
  { db }: Pick<Connection, 'db'>,
  id: number,
  fence: number,
  options: { transition?: Reschedule; held?: Partial<Holder> } = {},
): Promise<boolean> {
  const { transition = retry, held } = options;
  const written = await rescheduleJobs(db, tables, { queue: 'q', workerId: 1, ...held }, [
    { id, fence, transition },
  ]);
  return written.has(id);
}

/** How far in the future the job is due, by the database's clock, in milliseconds. */
async function dueInMs(id: number): Promise<number> {
  const [row] = await database.client<{ ms: number }[]>`
    select (extract(epoch from run_at - statement_timestamp()) * 1000)::float8 as ms from queue_jobs where id = ${id}`;
  return Number(row?.ms);
}

describe('the job afterwards', () => {
  test('is held by nobody, due after the delay, with the error; the fence stays', async () => {
    const id = await addJob(database.client, { uniqueKey: 'u', payload: [1], metadata: { a: 1 } });
    await claim(database.db);
    const held = await jobRow(database.client, id);
    expect(await reschedule(database, id, 1)).toBe(true);
    const after = await jobRow(database.client, id);
    const at = after?.errors[0]?.at;
    expect(after).toEqual({
      ...held,
      worker_id: null,
      claimed_at: null,
      attempt: 1,
      run_at: after?.run_at,
      errors: [{ ...retry.error, at }],
    });
    expect(await dueInMs(id)).toBeGreaterThan(40_000);
    expect(await dueInMs(id)).toBeLessThanOrEqual(60_000);
    // One time for both: the start of the statement, by the database's clock.
    expect(Date.parse(String(after?.run_at)) - Date.parse(String(at))).toBe(60_000);
    expect(await claim(database.db)).toEqual([]);
  });

  test('with a delay of 0 is due at once, and claimed with the next fence', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 6, attempt: 3 });
    await reschedule(database, id, 6, { transition: { ...retry, delayMs: 0, attempt: 2 } });
    expect(await claim(database.db)).toMatchObject([{ id, fence: 7, attempt: 3 }]);
  });

  test('without a delay keeps its place in the queue', async () => {
    const [first, second] = await addJobs(database.client, [{ dueInMs: -90_000 }, { dueInMs: -80_000 }]);
    await claim(database.db);
    const held = await jobRow(database.client, first);
    expect(await reschedule(database, first, 1, { transition: giveBack })).toBe(true);
    expect(await jobRow(database.client, first)).toEqual({
      ...held,
      worker_id: null,
      claimed_at: null,
      attempt: 0,
    });
    expect(idsOf(await claim(database.db, { limit: 2 }))).toEqual([first, second]);
  });

  test('keeps the last 10 errors, oldest first', async () => {
    const id = await addJob(database.client);
    for (let attempt = 1; attempt <= 12; attempt++) {
      await claim(database.db);
      const error = { attempt, name: 'Error', message: `${attempt}` };
      await reschedule(database, id, attempt, { transition: { ...retry, attempt, delayMs: 0, error } });
    }
    const errors = (await jobRow(database.client, id))?.errors;
    expect(errors?.map(({ attempt }) => attempt)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    const times = errors?.map(({ at }) => at) ?? [];
    expect(times).toEqual([...times].sort());
  });

  test('each of a batch gets its own delay, attempt and error', async () => {
    const ids = await addJobs(
      database.client,
      Array.from({ length: 100 }, () => ({ workerId: 1 })),
    );
    const written = await rescheduleJobs(
      database.db,
      tables,
      { queue: 'q', workerId: 1 },
      ids.map((id, place) => ({
        id,
        fence: 0,
        transition: {
          type: 'reschedule',
          delayMs: place * 1_000_000,
          attempt: place,
          error: place % 2 === 0 ? null : { attempt: place, name: 'Error', message: `${place}` },
        },
      })),
    );
    expect(new Set(written.keys())).toEqual(new Set(ids));
    for (const [place, id] of ids.entries()) {
      const row = await jobRow(database.client, id);
      expect(row).toMatchObject({ attempt: place, errors: place % 2 === 0 ? [] : [{ message: `${place}` }] });
      expect(await dueInMs(id)).toBeGreaterThan((place - 0.1) * 1_000_000);
      expect(await dueInMs(id)).toBeLessThanOrEqual(place * 1_000_000);
    }
  });
});

test('says why the end of a job was asked for, and leaves that on its row', async () => {
  const id = await addJob(database.client, { workerId: 1 });
  await database.client`update queue_jobs set cancel_reason = 'the customer left'`;
  const transition = retry;
  const written = await rescheduleJobs(database.db, tables, { queue: 'q', workerId: 1 }, [
    { id, fence: 0, transition },
  ]);
  expect(written).toEqual(new Map([[id, 'the customer left']]));
  expect(await jobRow(database.client, id)).toMatchObject({
    worker_id: null,
    cancel_reason: 'the customer left',
  });
});

describe('the fence: nothing is changed', () => {
  test.each([
    ['under an older fence', { fence: 2 }],
    ['under a fence that nobody has given yet', { fence: 4 }],
    ['by another worker', { workerId: 2 }],
    ['by nobody', { workerId: null }],
    ['as a job of another queue', { queue: 'other' }],
  ])('%s', async (_, { fence = 3, ...held }: { fence?: number } & Partial<Holder>) => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    const before = await jobRow(database.client, id);
    expect(await reschedule(database, id, fence, { held })).toBe(false);
    expect(await jobRow(database.client, id)).toEqual(before);
    expect(await reschedule(database, id, 3)).toBe(true);
  });

  test('when it was rescheduled in between: the same write twice counts once', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    expect(await reschedule(database, id, 3)).toBe(true);
    const after = await jobRow(database.client, id);
    expect(await reschedule(database, id, 3)).toBe(false);
    expect(await jobRow(database.client, id)).toEqual(after);
  });

  test('when it was ended in between', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    await database.client`delete from queue_jobs`;
    expect(await reschedule(database, id, 3)).toBe(false);
  });

  test('of two attempts of one job in a batch, the one that holds it decides', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 2, attempt: 2 });
    const late = { id, fence: 1, transition: { ...retry, attempt: 1 } };
    const own = { id, fence: 2, transition: { ...giveBack, attempt: 7 } };
    // In either order, since the planner may take either.
    for (const batch of [
      [late, own],
      [own, late],
    ]) {
      await database.client`update queue_jobs set worker_id = 1, attempt = 2`;
      const written = await rescheduleJobs(database.db, tables, { queue: 'q', workerId: 1 }, batch);
      expect(written).toEqual(new Map([[id, null]]));
      expect(await jobRow(database.client, id)).toMatchObject({ attempt: 7, errors: [], worker_id: null });
    }
  });

  test('and the others of the batch are written', async () => {
    const [lost, own] = await addJobs(database.client, [
      { workerId: 2, fence: 2 },
      { workerId: 1, fence: 1 },
    ]);
    const written = await rescheduleJobs(
      database.db,
      tables,
      { queue: 'q', workerId: 1 },
      [lost, own].map((id) => ({ id, fence: 1, transition: retry })),
    );
    expect(written).toEqual(new Map([[own, null]]));
    expect(await jobRow(database.client, lost)).toMatchObject({ worker_id: 2, fence: 2, errors: [] });
  });
});

describe('while another transaction changes the job', () => {
  test.each([
    ['takes it over', 'update queue_jobs set worker_id = 2, fence = fence + 1'],
    ['gives it back', 'update queue_jobs set worker_id = null'],
    ['deletes it', 'delete from queue_jobs'],
  ])('that %s: waits, looks again, and leaves it', async (_, change) => {
    const id = await addJob(database.client, { workerId: 1, fence: 1 });
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client.unsafe(change);
    const after = await jobRow(one.client, id);
    const rescheduling = reschedule(two, id, 1);
    await untilBlocked(database, two);
    await commit(one);
    expect(await rescheduling).toBe(false);
    expect(await jobRow(database.client, id)).toEqual(after);
  });

  test('that rolls back: waits, and writes', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 1 });
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client`delete from queue_jobs`;
    const rescheduling = reschedule(two, id, 1);
    await untilBlocked(database, two);
    await rollback(one);
    expect(await rescheduling).toBe(true);
  });

  test('that does not touch the hold: keeps what that one wrote', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 1 });
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client`
      update queue_jobs set run_at = '2001-01-01T00:00:00Z', errors = '[{"attempt": 9}]' where id = ${id}`;
    const rescheduling = reschedule(two, id, 1, { transition: { ...retry, delayMs: null } });
    await untilBlocked(database, two);
    await commit(one);
    expect(await rescheduling).toBe(true);
    const after = await jobRow(database.client, id);
    expect(new Date(String(after?.run_at)).toISOString()).toBe('2001-01-01T00:00:00.000Z');
    expect(after?.errors.map(({ attempt }) => attempt)).toEqual([9, 1]);
  });
});
