import { createQueue, defineJob, type EnqueueEntry, InvalidPayloadError, unvalidated } from 'drizzle-queue';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { twoBackends } from '../queries/support/locks.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { recording, untouched } from './support/executors.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const queue = createQueue();
const index = defineJob('index', { payload: unvalidated<number>() });

async function liveJobs(): Promise<{ id: number; payload: unknown }[]> {
  return [
    ...(await database.client<{ id: number; payload: unknown }[]>`
    select id::int, payload from queue_jobs order by id`),
  ];
}

test('no entries: no answers, and nothing is sent', async () => {
  expect(await queue.enqueueMany(untouched(), index, [])).toEqual([]);
});

test('one entry is as one enqueue', async () => {
  const [first] = await queue.enqueueMany(database.db, index, [{ payload: 1, uniqueKey: 'u' }]);
  expect(first?.duplicate).toBe(false);
  expect(await queue.enqueueMany(database.db, index, [{ payload: 2, uniqueKey: 'u' }])).toEqual([
    { id: first?.id, duplicate: true, outcome: 'duplicate' },
  ]);
});

test.each([true, false])(
  'answers are in input order where rows of several queues come back in another one, as on Citus; wake-ups: %s',
  async (wakeUps) => {
    const shards = {
      execute: async (query: Parameters<typeof database.db.execute>[0]) => {
        const rows = await database.db.execute(query);
        return [...rows].reverse();
      },
      selectDistinctOn: database.db.selectDistinctOn,
    };
    const answers = await createQueue({ wakeUps }).enqueueMany(shards, index, [
      { payload: 0, queue: 'b' },
      { payload: 1, queue: 'a' },
      { payload: 2, queue: 'b' },
    ]);
    expect(await liveJobs()).toEqual(answers.map(({ id }, payload) => ({ id, payload })));
  },
);

test('each entry has options of its own', async () => {
  const answers = await queue.enqueueMany(database.db, index, [
    { payload: 0, priority: 1 },
    { payload: 1, queue: 'other', maxAttempts: 2 },
    { payload: 2, delayMs: 60_000, metadata: { a: 1 } },
    { payload: 3, runAt: new Date('2020-01-01T00:00:00.123Z') },
    { payload: 4, uniqueKey: 'u' },
  ]);
  const records = await Promise.all(answers.map(({ id }) => queue.find(database.db, index, id)));
  expect(records).toMatchObject([
    { payload: 0, priority: 1, state: 'due' },
    { payload: 1, queue: 'other', maxAttempts: 2 },
    { payload: 2, state: 'scheduled', metadata: { a: 1 } },
    { payload: 3, runAt: new Date('2020-01-01T00:00:00.123Z') },
    { payload: 4, uniqueKey: 'u', priority: 5, queue: 'default' },
  ]);
});

test('all or nothing: one invalid entry, and none is sent', async () => {
  const entries = [{ payload: 1 }, { payload: Number.NaN }, { payload: 3 }];
  await expect(queue.enqueueMany(untouched(), index, entries)).rejects.toThrow(InvalidPayloadError);
  const outOfRange = [{ payload: 1 }, { payload: 2, priority: 10 }];
  await expect(queue.enqueueMany(untouched(), index, outOfRange)).rejects.toThrow(RangeError);
});

describe('keys', () => {
  const keys = ['a', 'b', 'c', 'd', `it's "é" 😀`];
  const queues = ['p', 'q'];
  const entryArbitrary = fc.record({
    queue: fc.constantFrom(...queues),
    uniqueKey: fc.option(fc.constantFrom(...keys), { nil: undefined }),
  });

  test('the answers stand in input order, whatever repeats inside the input and stands outside', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(entryArbitrary, { selector: (entry) => JSON.stringify(entry), maxLength: 5 }),
        fc.array(entryArbitrary, { maxLength: 30 }),
        async (standing, bulk) => {
          await clearTables(database.client);
          const model = new Map<string, number>();
          for (const entry of standing) {
            const { id } = await queue.enqueue(database.db, index, -1, entry);
            if (entry.uniqueKey !== undefined) model.set(`${entry.queue} ${entry.uniqueKey}`, id);
          }
          const entries: EnqueueEntry<typeof index>[] = bulk.map((entry, payload) => ({ payload, ...entry }));
          const answers = await queue.enqueueMany(database.db, index, entries);

          expect(answers).toHaveLength(entries.length);
          const inserted: unknown[] = [];
          for (const [place, { id, duplicate, outcome }] of answers.entries()) {
            const entry = bulk[place];
            const key = entry?.uniqueKey === undefined ? undefined : `${entry.queue} ${entry.uniqueKey}`;
            const inTheWay = key === undefined ? undefined : model.get(key);
            expect({ id, duplicate, outcome }).toEqual(
              inTheWay === undefined
                ? { id, duplicate: false, outcome: 'enqueued' }
                : { id: inTheWay, duplicate: true, outcome: 'duplicate' },
            );
            if (duplicate) continue;
            inserted.push({ id, payload: place });
            if (key !== undefined) model.set(key, id);
          }
          // Exactly those, each with its payload, and in the order of the input.
          const live = (await liveJobs()).filter(({ payload }) => payload !== -1);
          expect(live).toEqual(inserted);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('two bulks with the same keys in opposite order never deadlock, and share the keys', async () => {
    const [one, two] = await twoBackends(database);
    const forwards = Array.from({ length: 300 }, (_, n) => ({ payload: n, uniqueKey: `key ${n}` }));
    const backwards = forwards.toReversed();
    for (let round = 0; round < 30; round++) {
      await clearTables(database.client);
      const [first, second] = await Promise.all([
        queue.enqueueMany(one.db, index, forwards),
        queue.enqueueMany(two.db, index, backwards),
      ]);
      expect(first.map(({ id }) => id)).toEqual(second.map(({ id }) => id).toReversed());
      const inserted = [...first, ...second].filter(({ duplicate }) => !duplicate);
      expect(inserted).toHaveLength(300);
    }
  });

  test('two transactions with the same keys in opposite orders: Postgres ends one, and the other commits', async () => {
    const [one, two] = await twoBackends(database);
    const enqueueBoth = (db: typeof one.db, keys: readonly string[], met: () => Promise<void>) =>
      db.transaction(async (tx) => {
        for (const uniqueKey of keys) {
          await queue.enqueue(tx, index, 1, { uniqueKey });
          if (uniqueKey === keys[0]) await met();
        }
      });
    let here = 0;
    const met = async () => {
      here++;
      await until(() => here === 2);
    };
    const outcomes = await Promise.allSettled([
      enqueueBoth(one.db, ['a', 'b'], met),
      enqueueBoth(two.db, ['b', 'a'], met),
    ]);
    const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    expect(reasons).toMatchObject([{ cause: { code: '40P01' } }]);
    const kept = await database.client`select unique_key from queue_jobs order by unique_key`;
    expect(kept.map((row) => row.unique_key)).toEqual(['a', 'b']);
  });
});

describe('large inputs', () => {
  test('70,000 entries, more than a statement may have parameters: one statement, answers in order', async () => {
    const db = recording(database.db);
    const entries = Array.from({ length: 70_000 }, (_, payload) => ({ payload }));
    const answers = await queue.enqueueMany(db, index, entries);
    expect(db.sent).toHaveLength(1);
    expect(db.sent[0]?.params.length).toBeLessThan(20);
    const live = await liveJobs();
    expect(live).toHaveLength(70_000);
    expect(answers.map(({ id }) => id)).toEqual(live.map(({ id }) => id));
    expect(live.every(({ payload }, place) => payload === place)).toBe(true);
  });

  test('3,000 entries with keys, twice: the second time all are duplicates', async () => {
    const entries = Array.from({ length: 3_000 }, (_, n) => ({
      payload: n,
      uniqueKey: `${(n * 1_009) % 3_000}`,
    }));
    const first = await queue.enqueueMany(database.db, index, entries);
    const second = await queue.enqueueMany(database.db, index, entries);
    expect(second).toEqual(first.map(({ id }) => ({ id, duplicate: true, outcome: 'duplicate' })));
    expect(await liveJobs()).toHaveLength(3_000);
  });
});
