import { createQueue, defineJob } from 'drizzle-queue';
import { beforeEach, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase();
const queue = createQueue();
const tick = defineJob('tick', { queue: 'q' });
const tock = defineJob('tock', { queue: 'q' });

beforeEach(() => clearTables(database.client));

async function discarded(job: typeof tick | typeof tock = tick, uniqueKey?: string): Promise<number> {
  const { id } = await queue.enqueue(database.db, job, undefined, { uniqueKey });
  await endJob(database.db, { kind: job.kind, state: 'discarded' });
  return id;
}

const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;

test('by id: the job is due again, with its history and all its attempts', async () => {
  const id = await discarded();
  expect(await queue.redrive(database.db, id)).toEqual({ redriven: 1, duplicates: 0 });
  expect(await queue.find(database.db, tick, id)).toMatchObject({
    id,
    state: 'due',
    attempt: 0,
    errors: [{ attempt: 1, message: 'no' }],
  });
  expect(await queue.redrive(database.db, id)).toEqual({ redriven: 0, duplicates: 0 });
});

test('by id: what is not discarded stays, and what is not there is nothing', async () => {
  const { id } = await queue.enqueue(database.db, tick);
  await endJob(database.db, { kind: 'tick' });
  expect(await queue.redrive(database.db, id)).toEqual({ redriven: 0, duplicates: 0 });
  expect(await queue.redrive(database.db, 999_999)).toEqual({ redriven: 0, duplicates: 0 });
  expect(await stateOf(id)).toBe('completed');
});

test('by filter: all, of a kind, of a queue, of a time, at most so many', async () => {
  const ids = [await discarded(), await discarded(tock), await discarded(), await discarded()];
  expect(await queue.redrive(database.db, { kind: 'tock' })).toEqual({ redriven: 1, duplicates: 0 });
  expect(await queue.redrive(database.db, { queue: 'other' })).toEqual({ redriven: 0, duplicates: 0 });
  expect(await queue.redrive(database.db, { finishedBefore: new Date(0) })).toEqual({
    redriven: 0,
    duplicates: 0,
  });
  expect(await queue.redrive(database.db, { finishedAfter: new Date('2999-01-01') })).toMatchObject({
    redriven: 0,
  });
  expect(await queue.redrive(database.db, { finishedAfter: new Date(0), limit: 1 })).toMatchObject({
    redriven: 1,
  });
  expect(await Promise.all(ids.map(stateOf))).toEqual(['due', 'due', 'discarded', 'discarded']);
  expect(await queue.redrive(database.db, { all: true })).toEqual({ redriven: 2, duplicates: 0 });
});

test('a job whose key a live one holds stays discarded, and is counted', async () => {
  const id = await discarded(tick, 'u');
  const { id: live } = await queue.enqueue(database.db, tick, undefined, { uniqueKey: 'u' });
  expect(await queue.redrive(database.db, id)).toEqual({ redriven: 0, duplicates: 1 });
  expect(await stateOf(id)).toBe('discarded');
  await queue.cancel(database.db, live);
  expect(await queue.redrive(database.db, id)).toEqual({ redriven: 1, duplicates: 0 });
  expect(await queue.enqueue(database.db, tick, undefined, { uniqueKey: 'u' })).toEqual({
    id,
    duplicate: true,
    outcome: 'duplicate',
  });
});
