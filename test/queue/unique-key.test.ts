import { createQueue, defineJob, QueueError, unvalidated } from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { claim, clearTables, tables } from '../queries/support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from '../queries/support/locks.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { intercepted } from './support/executors.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const queue = createQueue();
const sync = defineJob('sync', { payload: unvalidated<number>(), queue: 'q' });
const other = defineJob('other', { payload: unvalidated<number>(), queue: 'q' });
const uniqueKey = 'account-7';

/** Claims and completes whatever is due. */
async function finishAll(): Promise<void> {
  const jobs = await claim(database.db, { kinds: ['sync'], limit: 10 });
  await finishJobs(
    database.db,
    tables,
    { queue: 'q', workerId: 1 },
    jobs.map(({ id, fence }) => ({
      id,
      fence,
      transition: { type: 'finish', state: 'completed', output: null, error: null, keepResult: true },
    })),
  );
}

async function liveIds(): Promise<number[]> {
  const rows = await database.client<{ id: number }[]>`select id::int from queue_jobs order by id`;
  return rows.map(({ id }) => id);
}

describe('a key', () => {
  test('refuses a second live job of its kind and queue, and says which one stands', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { uniqueKey });
    expect(first.duplicate).toBe(false);
    const again = await queue.enqueue(database.db, sync, 2, { uniqueKey });
    expect(again).toEqual({ id: first.id, duplicate: true, outcome: 'duplicate' });
    expect(await queue.find(database.db, first.id)).toMatchObject({ payload: 1, uniqueKey });
  });

  test('stands as well while the job is scheduled and while it runs', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { uniqueKey, delayMs: 60_000 });
    expect(await queue.enqueue(database.db, sync, 2, { uniqueKey })).toEqual({
      id: first.id,
      duplicate: true,
      outcome: 'duplicate',
    });
    await database.client`update queue_jobs set run_at = now()`;
    await claim(database.db, { kinds: ['sync'] });
    expect(await queue.enqueue(database.db, sync, 3, { uniqueKey })).toEqual({
      id: first.id,
      duplicate: true,
      outcome: 'duplicate',
    });
  });

  test('counts per kind and per queue', async () => {
    const enqueued = [
      await queue.enqueue(database.db, sync, 1, { uniqueKey }),
      await queue.enqueue(database.db, other, 1, { uniqueKey }),
      await queue.enqueue(database.db, sync, 1, { uniqueKey, queue: 'p' }),
      await queue.enqueue(database.db, sync, 1, { uniqueKey: `${uniqueKey} ` }),
      await queue.enqueue(database.db, sync, 1),
      await queue.enqueue(database.db, sync, 1),
    ];
    expect(enqueued.map(({ duplicate }) => duplicate)).toEqual([false, false, false, false, false, false]);
  });

  test('is free again when the job has finished', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { uniqueKey });
    await finishAll();
    const second = await queue.enqueue(database.db, sync, 2, { uniqueKey });
    expect(second.duplicate).toBe(false);
    expect(second.id).toBeGreaterThan(first.id);
  });

  test('is free again when the job was cancelled', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { uniqueKey });
    await queue.cancel(database.db, first.id);
    expect(await queue.enqueue(database.db, sync, 2, { uniqueKey })).toMatchObject({ duplicate: false });
  });
});

describe('inside one transaction', () => {
  test('the second enqueue is a duplicate of the first', async () => {
    const [first, second] = await database.db.transaction(async (tx) => [
      await queue.enqueue(tx, sync, 1, { uniqueKey }),
      await queue.enqueue(tx, sync, 2, { uniqueKey }),
    ]);
    expect(second).toEqual({ id: first?.id, duplicate: true, outcome: 'duplicate' });
  });

  test('a savepoint that is rolled back gives the key back', async () => {
    const last = await database.db.transaction(async (tx) => {
      await tx
        .transaction(async (inner) => {
          await queue.enqueue(inner, sync, 1, { uniqueKey });
          throw new Error('undo');
        })
        .catch(() => undefined);
      return await queue.enqueue(tx, sync, 2, { uniqueKey });
    });
    expect(last.duplicate).toBe(false);
    expect(await liveIds()).toEqual([last.id]);
  });
});

describe('against another open transaction', () => {
  test('waits for one that enqueued the key: a duplicate when that commits', async () => {
    const [one, two] = await twoBackends(database);
    await begin(one);
    const first = await queue.enqueue(one.db, sync, 1, { uniqueKey });
    const second = queue.enqueue(two.db, sync, 2, { uniqueKey });
    await untilBlocked(database, two);
    await commit(one);
    expect(await second).toEqual({ id: first.id, duplicate: true, outcome: 'duplicate' });
  });

  test('waits for one that enqueued the key: inserted when that rolls back', async () => {
    const [one, two] = await twoBackends(database);
    await begin(one);
    const first = await queue.enqueue(one.db, sync, 1, { uniqueKey });
    const second = queue.enqueue(two.db, sync, 2, { uniqueKey });
    await untilBlocked(database, two);
    await rollback(one);
    const { id, duplicate } = await second;
    expect(duplicate).toBe(false);
    expect(id).not.toBe(first.id);
    expect(await liveIds()).toEqual([id]);
  });

  test('waits for one that ends the job with the key: inserted when that commits', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { uniqueKey });
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await queue.cancel(one.db, first.id)).toEqual({ cancelled: true });
    const second = queue.enqueue(two.db, sync, 2, { uniqueKey });
    await untilBlocked(database, two);
    await commit(one);
    expect(await second).toMatchObject({ duplicate: false });
  });

  test('does not wait for one that enqueued another key', async () => {
    const [one, two] = await twoBackends(database);
    await begin(one);
    await queue.enqueue(one.db, sync, 1, { uniqueKey });
    expect(await queue.enqueue(two.db, sync, 2, { uniqueKey: 'account-8' })).toMatchObject({
      duplicate: false,
      outcome: 'enqueued',
    });
    await commit(one);
  });
});

describe('when the job in the way finishes at that very moment', () => {
  test('the enqueue is tried again, and its job is in', async () => {
    const first = await queue.enqueue(database.db, sync, 1, { uniqueKey });
    // Between the insert, which was refused, and the look for who stands in the way.
    const db = intercepted(database.db, async (_, sent) => {
      if (sent.length === 1) await finishAll();
    });
    const second = await queue.enqueue(db, sync, 2, { uniqueKey });
    expect(second.duplicate).toBe(false);
    expect(await liveIds()).toEqual([second.id]);
    expect(await queue.find(database.db, first.id)).toMatchObject({ state: 'completed' });
  });

  test('in bulk as well, with every answer in its place', async () => {
    const gone = await queue.enqueue(database.db, sync, 0, { uniqueKey: 'gone' });
    const stays = await queue.enqueue(database.db, sync, 0, { uniqueKey: 'stays', delayMs: 60_000 });
    const db = intercepted(database.db, async (_, sent) => {
      if (sent.length === 1) await finishAll();
    });
    const entries = ['new', 'gone', 'stays', 'gone'].map((key, payload) => ({
      payload,
      uniqueKey: key,
      // Not to be finished together with the one that is in the way.
      delayMs: 60_000,
    }));
    const answers = await queue.enqueueMany(db, sync, entries);
    const [fresh, anew] = answers;
    expect(answers).toEqual([
      { id: fresh?.id, duplicate: false, outcome: 'enqueued' },
      { id: anew?.id, duplicate: false, outcome: 'enqueued' },
      { id: stays.id, duplicate: true, outcome: 'duplicate' },
      { id: anew?.id, duplicate: true, outcome: 'duplicate' },
    ]);
    expect(anew?.id).toBeGreaterThan(gone.id);
    expect(await liveIds()).toEqual([stays.id, fresh?.id, anew?.id]);
  });

  test('and another one takes the key each time, it gives up with an error instead of going on for ever', async () => {
    const db = intercepted(database.db, async ({ sql }) => {
      await database.client`delete from queue_jobs`;
      if (sql.includes('insert into')) await queue.enqueue(database.db, sync, 1, { uniqueKey });
    });
    await expect(queue.enqueue(db, sync, 2, { uniqueKey })).rejects.toThrow(QueueError);
    await expect(queue.enqueue(db, sync, 2, { uniqueKey })).rejects.toThrow(
      /enqueue: .* ended and was replaced 10 times/,
    );
  });
});

test('50 connections that enqueue one key at once: one job, and 49 duplicates that name it', async () => {
  const connections = await database.connect(50);
  for (let round = 0; round < 3; round++) {
    await clearTables(database.client);
    const answers = await Promise.all(
      connections.map(({ db }, n) => queue.enqueue(db, sync, n, { uniqueKey })),
    );
    expect(answers.filter(({ duplicate }) => duplicate)).toHaveLength(49);
    const ids = await liveIds();
    expect(ids).toHaveLength(1);
    expect(new Set(answers.map(({ id }) => id))).toEqual(new Set(ids));
  }
});

describe('under REPEATABLE READ and SERIALIZABLE', () => {
  const levels = ['repeatable read', 'serializable'] as const;

  test.each(levels)('%s: a duplicate of what the transaction sees', async (level) => {
    const first = await queue.enqueue(database.db, sync, 1, { uniqueKey });
    const [one] = await twoBackends(database);
    await begin(one, level);
    expect(await queue.enqueue(one.db, sync, 2, { uniqueKey })).toEqual({
      id: first.id,
      duplicate: true,
      outcome: 'duplicate',
    });
    const [own] = await queue.enqueueMany(one.db, sync, [{ payload: 3, uniqueKey: 'mine' }]);
    const bulk = [1, 2].map((payload) => ({ payload, uniqueKey: 'mine' }));
    expect(await queue.enqueueMany(one.db, sync, bulk)).toEqual([
      { id: own?.id, duplicate: true, outcome: 'duplicate' },
      { id: own?.id, duplicate: true, outcome: 'duplicate' },
    ]);
    await commit(one);
  });

  test.each(levels)(
    '%s: a job that was committed since is a serialization failure, to be retried',
    async (level) => {
      const [one, two] = await twoBackends(database);
      await begin(one, level);
      await one.client`select from queue_jobs`;
      const first = await queue.enqueue(two.db, sync, 1, { uniqueKey });
      const second = queue.enqueue(one.db, sync, 2, { uniqueKey });
      await expect(second).rejects.toMatchObject({ cause: { code: '40001' } });
      await rollback(one);
      await begin(one, level);
      expect(await queue.enqueue(one.db, sync, 2, { uniqueKey })).toEqual({
        id: first.id,
        duplicate: true,
        outcome: 'duplicate',
      });
      await commit(one);
    },
  );

  test.each(levels)('%s: one that waits and loses fails, one that waits and wins inserts', async (level) => {
    const [one, two] = await twoBackends(database);
    for (const end of [commit, rollback]) {
      await clearTables(database.client);
      await begin(one);
      await begin(two, level);
      await queue.enqueue(one.db, sync, 1, { uniqueKey });
      const second = queue.enqueue(two.db, sync, 2, { uniqueKey });
      second.catch(() => undefined);
      await untilBlocked(database, two);
      await end(one);
      if (end === commit) await expect(second).rejects.toMatchObject({ cause: { code: '40001' } });
      else expect(await second).toMatchObject({ duplicate: false });
      await rollback(two);
    }
  });

  test.each(levels)('%s: different keys do not disturb each other', async (level) => {
    const [one, two] = await twoBackends(database);
    await begin(one, level);
    await begin(two, level);
    await queue.enqueue(one.db, sync, 1, { uniqueKey: 'a' });
    await queue.enqueue(two.db, sync, 2, { uniqueKey: 'b' });
    await commit(one);
    await commit(two);
    expect(await liveIds()).toHaveLength(2);
  });
});
