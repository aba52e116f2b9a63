import { beforeEach, describe, expect, test } from 'vitest';
import type { Finish } from '../../src/core/job/transition.ts';
import { finishFreeJobs, finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import type { Holder } from '../../src/core/sql/fence.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { addJob, addJobs, claim, clearTables, jobRow, resultRow, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const completed: Finish = {
  type: 'finish',
  state: 'completed',
  output: '{"sent":true}',
  error: null,
  keepResult: true,
};
const discarded: Finish = {
  ...completed,
  state: 'discarded',
  output: null,
  error: { attempt: 3, name: 'TypeError', message: 'no such "thing"', stack: 'at there' },
};

/** Ends one job of queue `q` as worker 1; answers whether that wrote anything. */
async function finish(
  { db }: Pick<Connection, 'db'>,
  id: number,
  fence: number,
  options: { transition?: Finish; held?: Partial<Holder> } = {},
): Promise<boolean> {
  const { transition = completed, held } = options;
  const ended = await finishJobs(db, tables, { queue: 'q', workerId: 1, ...held }, [
    { id, fence, transition },
  ]);
  return ended.has(id);
}

/** What must be so after a write that was refused. */
async function expectUntouched(id: number, before: unknown): Promise<void> {
  expect(await jobRow(database.client, id)).toEqual(before);
  expect(await resultRow(database.client, id)).toBeUndefined();
}

test('a job whose end was requested is not discarded, but completed', async () => {
  const id = await addJob(database.client, { workerId: 1, fence: 1, attempt: 3 });
  await database.client`update queue_jobs set cancel_reason = 'why'`;
  const before = await jobRow(database.client, id);
  const free = await finishFreeJobs(database.db, tables, { queue: 'q', workerId: 1 }, [
    { id, fence: 1, transition: discarded },
  ]);
  expect(free).toEqual({ finished: new Set(), locked: new Set() });
  expect(await finish(database, id, 1, { transition: discarded })).toBe(false);
  await expectUntouched(id, before);
  expect(await finish(database, id, 1)).toBe(true);
});

test('a job whose end is requested while its row is locked is not discarded', async () => {
  const id = await addJob(database.client, { workerId: 1, fence: 1, attempt: 3 });
  const [one, two] = await twoBackends(database);
  await begin(one);
  await one.client`update queue_jobs set cancel_reason = 'why'`;
  const late = finish(two, id, 1, { transition: discarded });
  await untilBlocked(database, two);
  await commit(one);
  expect(await late).toBe(false);
  expect(await jobRow(database.client, id)).toMatchObject({ worker_id: 1, cancel_reason: 'why' });
});

describe('the result', () => {
  test('has every column of the job as it was, and what became of it', async () => {
    const id = await addJob(database.client, {
      payload: { orderId: 7 },
      priority: 2,
      attempt: 2,
      maxAttempts: 9,
      fence: 4,
      uniqueKey: 'u',
      metadata: { tenant: 't' },
      errors: [{ attempt: 1, name: 'Error', message: 'first', at: '2024-01-01T00:00:00.000Z' }],
    });
    await claim(database.db);
    const job = await jobRow(database.client, id);
    expect(await finish(database, id, 5)).toBe(true);
    expect(await jobRow(database.client, id)).toBeUndefined();
    const result = await resultRow(database.client, id);
    // What was asked of it, and how far it was, end with it.
    const { id: _, cancel_reason, progress, waiting_key, blockers, ...rest } = { ...job };
    expect([cancel_reason, progress, waiting_key, blockers]).toEqual([null, null, null, null]);
    expect(result).toEqual({
      ...rest,
      job_id: id,
      state: 'completed',
      output: { sent: true },
      finished_at: result?.finished_at,
    });
    expect(Date.parse(String(result?.finished_at))).toBeGreaterThanOrEqual(
      Date.parse(String(job?.claimed_at)),
    );
  });

  test('of a discarded job has the last error, at the database’s time', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 1, attempt: 3 });
    await finish(database, id, 1, { transition: discarded });
    const result = await resultRow(database.client, id);
    expect(result).toMatchObject({ state: 'discarded', output: null });
    expect(result?.errors).toEqual([{ ...discarded.error, at: result?.errors[0]?.at }]);
    // To the millisecond, in UTC, as JavaScript writes it.
    expect(result?.errors[0]?.at).toBe(new Date(String(result?.finished_at)).toISOString());
  });

  test('keeps the last 10 errors', async () => {
    const error = (attempt: number) => ({ attempt, name: 'Error', message: `${attempt}`, at: 'then' });
    const errors = Array.from({ length: 10 }, (_, index) => error(index + 1));
    const [full, almost] = await addJobs(database.client, [
      { workerId: 1, errors },
      { workerId: 1, errors: errors.slice(1) },
    ]);
    await finishJobs(database.db, tables, { queue: 'q', workerId: 1 }, [
      { id: full, fence: 0, transition: discarded },
      { id: almost, fence: 0, transition: discarded },
    ]);
    for (const id of [full, almost]) {
      const result = await resultRow(database.client, id);
      expect(result?.errors.map(({ attempt }) => attempt)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 3]);
    }
  });

  test('without an error leaves the history alone, even a full one', async () => {
    const errors = Array.from({ length: 10 }, (_, attempt) => ({ attempt }));
    const id = await addJob(database.client, { workerId: 1, errors });
    await finish(database, id, 0);
    expect((await resultRow(database.client, id))?.errors).toEqual(errors);
  });

  test('is not written where it is not to be kept, and the job ends all the same', async () => {
    const [kept, dropped] = await addJobs(database.client, [{ workerId: 1 }, { workerId: 1 }]);
    const ended = await finishJobs(database.db, tables, { queue: 'q', workerId: 1 }, [
      { id: kept, fence: 0, transition: completed },
      { id: dropped, fence: 0, transition: { ...completed, keepResult: false } },
    ]);
    expect(ended).toEqual(new Set([kept, dropped]));
    expect(await resultRow(database.client, kept)).toBeDefined();
    expect(await resultRow(database.client, dropped)).toBeUndefined();
    expect(await jobRow(database.client, dropped)).toBeUndefined();
  });

  test('has no payload where only the outcome is kept, which a payload of null is not', async () => {
    const jobs = [
      { keepResult: 'outcome', kept: false },
      { keepResult: true, kept: true },
      { keepResult: false, kept: undefined },
    ] as const;
    for (const mixed of [jobs, jobs.slice(0, 1), jobs.filter(({ kept }) => kept !== true)]) {
      for (const payload of [{ orderId: 7 }, null]) {
        const ids = await addJobs(
          database.client,
          mixed.map(() => ({ workerId: 1, fence: 3, payload, metadata: { tenant: 't' } })),
        );
        const ended = await finishJobs(
          database.db,
          tables,
          { queue: 'q', workerId: 1 },
          mixed.map(({ keepResult }, index) => ({
            id: Number(ids[index]),
            fence: 3,
            transition: { ...completed, keepResult },
          })),
        );
        expect(ended).toEqual(new Set(ids));
        const rows = await database.client`
          select job_id, payload is not null as kept, payload::text from queue_results where job_id = any(${ids})`;
        expect(new Map(rows.map(({ job_id, kept }) => [job_id, kept]))).toEqual(
          new Map(
            mixed.flatMap(({ kept }, index) => (kept === undefined ? [] : [[String(ids[index]), kept]])),
          ),
        );
        for (const { kept, payload: text } of rows) {
          expect(kept ? JSON.parse(text) : text).toEqual(kept ? payload : null);
        }
        expect(await resultRow(database.client, Number(ids[0]))).toMatchObject({
          state: 'completed',
          output: { sent: true },
          fence: 3,
          metadata: { tenant: 't' },
        });
      }
    }
  });

  test.each(['null', '0', 'false', '""', '"10.5"', '[]', '{"a":null}', '"ü😀\\n\\"quoted\\""'])(
    'keeps the output %s as it is',
    async (output) => {
      const id = await addJob(database.client, { workerId: 1 });
      await finish(database, id, 0, { transition: { ...completed, output } });
      expect((await resultRow(database.client, id))?.output).toEqual(JSON.parse(output));
    },
  );

  test('each of a batch gets its own outcome; a batch of none is none', async () => {
    const ids = await addJobs(
      database.client,
      Array.from({ length: 300 }, () => ({ workerId: 1 })),
    );
    const ended = await finishJobs(
      database.db,
      tables,
      { queue: 'q', workerId: 1 },
      ids.map((id) => ({ id, fence: 0, transition: { ...completed, output: String(id) } })),
    );
    expect(ended).toEqual(new Set(ids));
    const [row] = await database.client`
      select count(*)::int as results, count(*) filter (where output = to_jsonb(job_id))::int as own from queue_results`;
    expect(row).toEqual({ results: 300, own: 300 });
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
    expect(await finish(database, id, fence, { held })).toBe(false);
    await expectUntouched(id, before);
    expect(await finish(database, id, 3)).toBe(true);
  });

  test('when it was rescheduled in between, which leaves the fence as it was', async () => {
    const id = await addJob(database.client, { fence: 3 });
    const before = await jobRow(database.client, id);
    expect(await finish(database, id, 3)).toBe(false);
    await expectUntouched(id, before);
  });

  test('when it was ended in between', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    expect(await finish(database, id, 3)).toBe(true);
    const result = await resultRow(database.client, id);
    expect(await finish(database, id, 3, { transition: discarded })).toBe(false);
    expect(await resultRow(database.client, id)).toEqual(result);
  });

  test('and the others of the batch end', async () => {
    const [lost, own, gone] = await addJobs(database.client, [
      { workerId: 2, fence: 2 },
      { workerId: 1, fence: 1 },
      { fence: 1 },
    ]);
    const ended = await finishJobs(
      database.db,
      tables,
      { queue: 'q', workerId: 1 },
      [lost, own, gone, 999_999].map((id) => ({ id, fence: 1, transition: completed })),
    );
    expect(ended).toEqual(new Set([own]));
    expect(await jobRow(database.client, lost)).toBeDefined();
    expect(await jobRow(database.client, gone)).toBeDefined();
  });

  test('the ids and fences of a batch belong together', async () => {
    const [a, b] = await addJobs(database.client, [
      { workerId: 1, fence: 1 },
      { workerId: 1, fence: 2 },
    ]);
    const ended = await finishJobs(database.db, tables, { queue: 'q', workerId: 1 }, [
      { id: a, fence: 2, transition: completed },
      { id: b, fence: 1, transition: completed },
    ]);
    expect(ended).toEqual(new Set());
  });

  test('of two attempts of one job in a batch, the one that holds it ends it, with its own outcome', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 2 });
    const late = { id, fence: 1, transition: discarded };
    const own = { id, fence: 2, transition: completed };
    for (const batch of [[late], [late, own]]) {
      const ended = await finishJobs(database.db, tables, { queue: 'q', workerId: 1 }, batch);
      expect(ended).toEqual(new Set(batch.includes(own) ? [id] : []));
    }
    expect(await resultRow(database.client, id)).toMatchObject({ state: 'completed', errors: [] });
  });

  test('a hold by lock is ended by its own transaction', async () => {
    const id = await addJob(database.client);
    const [one] = await twoBackends(database);
    await begin(one);
    await claim(one.db, { workerId: null });
    expect(await finish(one, id, 1, { held: { workerId: null } })).toBe(true);
    await commit(one);
    expect(await resultRow(database.client, id)).toMatchObject({ state: 'completed', worker_id: null });
  });
});

describe('while another transaction changes the job', () => {
  const changes = {
    'takes it over': 'update queue_jobs set worker_id = 2, fence = fence + 1',
    'gives it back': 'update queue_jobs set worker_id = null',
    'deletes it': 'delete from queue_jobs',
  };

  test.each(Object.entries(changes))('that %s: waits, looks again, and leaves it', async (_, change) => {
    const id = await addJob(database.client, { workerId: 1, fence: 1 });
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client.unsafe(change);
    const after = await jobRow(one.client, id);
    const finishing = finish(two, id, 1);
    await untilBlocked(database, two);
    await commit(one);
    expect(await finishing).toBe(false);
    await expectUntouched(id, after);
  });

  test.each(Object.entries(changes))('that %s and rolls back: waits, and ends it', async (_, change) => {
    const id = await addJob(database.client, { workerId: 1, fence: 1 });
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client.unsafe(change);
    const finishing = finish(two, id, 1);
    await untilBlocked(database, two);
    await rollback(one);
    expect(await finishing).toBe(true);
    expect(await resultRow(database.client, id)).toMatchObject({ fence: 1, worker_id: 1 });
  });

  test('that does not touch the hold: waits, and ends it as it is then', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 1 });
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client`update queue_jobs set metadata = '{"note": "mine"}'`;
    const finishing = finish(two, id, 1);
    await untilBlocked(database, two);
    await commit(one);
    expect(await finishing).toBe(true);
    expect(await resultRow(database.client, id)).toMatchObject({ metadata: { note: 'mine' } });
  });

  test('of two that end it at once, one does', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 1 });
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await finish(one, id, 1)).toBe(true);
    const finishing = finish(two, id, 1, { transition: discarded });
    await untilBlocked(database, two);
    await commit(one);
    expect(await finishing).toBe(false);
    expect(await resultRow(database.client, id)).toMatchObject({ state: 'completed' });
  });
});
