import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { beforeEach, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { enqueueMoreThan32Megabytes } from './support/more-than-32-megabytes.ts';

const database = useTestDatabase();
const queue = createQueue();
const index = defineJob('index', { payload: unvalidated<number>() });

beforeEach(() => clearTables(database.client));

test('70,000 entries with keys, twice: the second time all are duplicates', async () => {
  const entries = Array.from({ length: 70_000 }, (_, n) => ({
    payload: n,
    uniqueKey: `${(n * 7_919) % 70_000}`,
  }));
  const first = await queue.enqueueMany(database.db, index, entries);
  const second = await queue.enqueueMany(database.db, index, entries);
  expect(second).toEqual(first.map(({ id }) => ({ id, duplicate: true, outcome: 'duplicate' })));
  expect(await database.client`select from queue_jobs`).toHaveLength(70_000);
});

test.each([
  ['with', true],
  ['without', false],
])('more than 32 MB, %s keys: several parameters of one statement, answers in order', async (_, keyed) => {
  await enqueueMoreThan32Megabytes(database, { keyed });
});
