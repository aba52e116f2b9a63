import { createQueue, defineJob } from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
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

describe('cancelled jobs', () => {
  async function cancelled(): Promise<number> {
    const { id } = await queue.enqueue(database.db, tick);
    await queue.cancel(database.db, id);
    return id;
  }

  test('come back when the filter says so, with their history, and nothing else does', async () => {
    const [id, other, failed] = [await cancelled(), await cancelled(), await discarded(tock)];
    expect(await queue.redrive(database.db, id)).toEqual({ redriven: 0, duplicates: 0 });
    expect(await queue.redrive(database.db, { all: true })).toEqual({ redriven: 1, duplicates: 0 });
    expect(await queue.redrive(database.db, { id, state: 'cancelled' })).toEqual({
      redriven: 1,
      duplicates: 0,
    });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0, errors: [{}] });
    expect(await queue.redrive(database.db, { all: true, state: 'cancelled' })).toMatchObject({
      redriven: 1,
    });
    expect(await Promise.all([id, other, failed].map(stateOf))).toEqual(['due', 'due', 'due']);
  });

  test('whose end was asked for while they ran may run again', async () => {
    const id = await cancelled();
    await queue.redrive(database.db, { id, state: 'cancelled' });
    expect(await endJob(database.db, { kind: 'tick' })).toEqual([id]);
    expect(await stateOf(id)).toBe('completed');
  });
});

describe('in batches', () => {
  async function many(count: number): Promise<number[]> {
    const entries = Array.from({ length: count }, () => ({}));
    const enqueued = await queue.enqueueMany(database.db, tick, entries);
    await endJob(database.db, { kind: 'tick', state: 'discarded', limit: count });
    return enqueued.map(({ id }) => id);
  }

  test('all come back, with the sums after each', async () => {
    const ids = await many(25);
    const sums: number[] = [];
    const options = {
      batchSize: 10,
      onProgress: ({ redriven }: { redriven: number }) => sums.push(redriven),
    };
    expect(await queue.redrive(database.db, { kind: 'tick' }, options)).toEqual({
      redriven: 25,
      duplicates: 0,
    });
    expect(sums).toEqual([10, 20, 25]);
    expect(new Set(await Promise.all(ids.map(stateOf)))).toEqual(new Set(['due']));
  });

  test('a job whose key is taken does not hold the others up', async () => {
    const taken = await discarded(tick, 'u');
    await queue.enqueue(database.db, tick, undefined, { uniqueKey: 'u', delayMs: 60_000 });
    await many(4);
    expect(await queue.redrive(database.db, { all: true }, { batchSize: 1 })).toEqual({
      redriven: 4,
      duplicates: 1,
    });
    expect(await stateOf(taken)).toBe('discarded');
  });

  test('an aborted signal ends it before the next batch: what came back stays', async () => {
    const ids = await many(6);
    const controller = new AbortController();
    const reason = new Error('enough');
    const options = { batchSize: 2, signal: controller.signal, onProgress: () => controller.abort(reason) };
    await expect(queue.redrive(database.db, { all: true }, options)).rejects.toBe(reason);
    expect(await Promise.all(ids.map(stateOf))).toEqual([
      ...['due', 'due'],
      ...['discarded', 'discarded', 'discarded', 'discarded'],
    ]);
  });

  test('each takes effect at once; in a transaction, none before its commit', async () => {
    const [id = 0] = await many(2);
    let seen: string | undefined;
    await database.db.transaction(async (tx) => {
      await queue.redrive(tx, { all: true }, { batchSize: 1 });
      seen = await stateOf(id);
    });
    expect([seen, await stateOf(id)]).toEqual(['discarded', 'due']);
  });

  test('limit, and two at once: each job comes back once', async () => {
    await many(40);
    const redriven = await Promise.all(
      [1, 2].map(() => queue.redrive(database.db, { all: true, limit: 15 }, { batchSize: 4 })),
    );
    expect(redriven.map((each) => each.redriven)).toEqual([15, 15]);
    expect((await queue.list(database.db, { state: 'discarded' })).jobs).toHaveLength(10);
  });

  test.each<[what: string, options: unknown, message: RegExp]>([
    ['batchSize 0', { batchSize: 0 }, /redrive: batchSize/],
    ['a progress that is none', { onProgress: 5 }, /redrive: onProgress/],
    ['a signal that is none', { signal: {} }, /redrive: signal/],
    ['a misspelt option', { batchsize: 5 }, /did you mean batchSize\?/],
  ])('%s is refused', async (_, options, message) => {
    // @ts-expect-error wrong on purpose
    await expect(queue.redrive(database.db, { all: true }, options)).rejects.toThrow(message);
  });

  test.each<[what: string, filter: unknown, message: RegExp]>([
    ['a state alone', { state: 'cancelled' }, /must have one of id, ids, kind/],
    ['another state', { all: true, state: 'completed' }, /state must be discarded or cancelled/],
    ['a state that was never set', { all: true, state: undefined }, /state is undefined/],
    ['an id that is none', { id: 'x' }, /id must be a job id/],
    ['all with an id', { all: true, id: 5 }, /all and id cannot be combined/],
  ])('%s is refused', async (_, filter, message) => {
    // @ts-expect-error wrong on purpose
    await expect(queue.redrive(database.db, filter)).rejects.toThrow(message);
  });
});

test('by ids: these and no other, in one call and by batches', async () => {
  const ids = [await discarded(), await discarded(tock), await discarded(), await discarded()];
  const [a = 0, b = 0, c = 0, d = 0] = ids;
  expect(await queue.redrive(database.db, { ids: [] })).toEqual({ redriven: 0, duplicates: 0 });
  expect(await queue.redrive(database.db, { ids: [d, a, 999_999, a], kind: 'tick' })).toEqual({
    redriven: 2,
    duplicates: 0,
  });
  const sums: number[] = [];
  const onProgress = ({ redriven }: { redriven: number }) => void sums.push(redriven);
  expect(await queue.redrive(database.db, { ids }, { batchSize: 1, onProgress })).toMatchObject({
    redriven: 2,
  });
  expect(sums).toEqual([1, 2]);
  expect(await Promise.all([a, b, c, d].map(stateOf))).toEqual(['due', 'due', 'due', 'due']);
});

test('by ids: what is no list of ids is refused', async () => {
  const calls = [{ ids: [0] }, { ids: [2 ** 53] }, { ids: '1' as never }, { ids: Array(10_001).fill(1) }];
  for (const filter of calls) {
    await expect(queue.redrive(database.db, filter)).rejects.toThrow(/redrive: ids? must be/);
    await expect(queue.cancelMany(database.db, filter)).rejects.toThrow(/cancelMany: ids? must be/);
  }
  await expect(queue.runNowMany(database.db, [1.5])).rejects.toThrow(/runNowMany: id must be/);
});
