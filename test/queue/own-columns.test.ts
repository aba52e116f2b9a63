import { eq, sql } from 'drizzle-orm';
import { text } from 'drizzle-orm/pg-core';
import {
  createQueue,
  type Database,
  defineJob,
  drain,
  type HandlerContext,
  handle,
  runNext,
} from 'drizzle-queue';
import { createQueueTables, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { checkDatabase } from '../../src/core/queries/presence/check-database.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { drivers, type OpenDriver } from './support/drivers.ts';
import { untouched } from './support/executors.ts';
import { addOwnColumns, ownTables } from './support/own-columns.ts';

const queue = createQueue({ tables: ownTables });
const send = defineJob('send', { payload: z.object({ to: z.string() }), maxAttempts: 1 });
const sync = defineJob('sync');

/** A value that is hard to keep in each column. */
const values = {
  tenantId: `O'Hara "x" \\ ü $1`,
  region: 'eu1',
  seats: -2_147_483_648,
  cents: 9_223_372_036_854_775_807n,
  score: 0.1,
  mass: '12345678.90',
  urgent: true,
  day: '2024-02-29',
  startsOn: new Date('2024-02-29T00:00:00Z'),
  endsAt: new Date('2024-02-29T12:34:56.789Z'),
  wallClock: new Date('1969-12-31T23:59:59.999Z'),
  ref: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
  tags: ['a', '10.5', 'null'],
  plan: 'paid' as const,
  words: new Set(['one', 'two']),
  rules: { b: 1, a: ['x'] },
  host: '10.0.0.1',
  code: 'abc',
  traceId: 't',
};

const nothing = {
  region: null,
  seats: null,
  cents: null,
  score: null,
  mass: null,
  urgent: false,
  day: null,
  startsOn: null,
  endsAt: null,
  wallClock: null,
  ref: expect.stringMatching(/^[0-9a-f-]{36}$/),
  tags: null,
  plan: 'free',
  words: null,
  rules: null,
  host: null,
  code: null,
  traceId: 'made by the app',
};

describe.each(Object.entries(drivers))('own columns through %s', (_, open) => {
  const database = useTestDatabase();
  let driver: OpenDriver;
  let db: Database;

  beforeAll(async () => {
    driver = await open(database);
    db = driver.db;
    for (const statement of addOwnColumns) await db.execute(statement);
  });
  afterAll(() => driver.close());
  beforeEach(async () => {
    await db.execute(sql`truncate queue_jobs, queue_results`);
  });

  /** As Drizzle reads the tables: the judge of what is stored. */
  const drizzle = () => db as typeof database.db;
  const liveRows = () => drizzle().select().from(ownTables.queueJobs);
  const resultRows = () => drizzle().select().from(ownTables.queueResults);
  const resultOf = (id: number) => resultRows().where(eq(ownTables.queueResults.jobId, id));

  /** As after a deploy that the rows are newer than. */
  const refuseBadWords = () => {
    const { words } = ownTables.queueJobs;
    const decode = words.mapFromDriverValue.bind(words);
    vi.spyOn(words, 'mapFromDriverValue').mockImplementation((value) => {
      if (value === 'bad') throw new TypeError('a word of a newer version');
      return decode(value);
    });
    onTestFinished(() => void vi.restoreAllMocks());
  };

  test('are stored and found as Drizzle itself would', async () => {
    const { id } = await queue.enqueue(db, send, { to: 'ada' }, values);
    expect(await liveRows()).toMatchObject([values]);
    expect(await queue.find(db, id)).toMatchObject({ state: 'due', ...values });
    expect((await queue.list(db)).jobs).toMatchObject([values]);
  });

  test('go along in a query for a batch', async () => {
    const [{ id }] = await queue.enqueueQuery(drizzle(), send, { to: 'ada' }, values);
    expect(await liveRows()).toMatchObject([{ id, ...values }]);
    const [plain] = await queue.enqueueQuery(drizzle(), send, { to: 'bo' }, { tenantId: 'a' });
    expect(await queue.find(db, plain.id ?? 0)).toMatchObject({ tenantId: 'a', ...nothing });
  });

  test('have the defaults of an insert where an enqueue says nothing', async () => {
    const { id } = await queue.enqueue(db, send, { to: 'ada' }, { tenantId: 'a' });
    expect(await liveRows()).toMatchObject([{ tenantId: 'a', ...nothing }]);
    expect(await queue.find(db, id)).toMatchObject({ tenantId: 'a', ...nothing });
  });

  test('can be null in spite of a default', async () => {
    await queue.enqueue(db, send, { to: 'ada' }, { tenantId: 'a', plan: null, traceId: null });
    expect(await liveRows()).toMatchObject([{ plan: null, traceId: null }]);
  });

  test('stay with a job for life: claimed, discarded, put back, completed', async () => {
    const { id } = await queue.enqueue(db, send, { to: 'ada' }, values);
    const seen: unknown[] = [];
    let fail = true;
    const handler = handle(send, async ({ job }: HandlerContext<typeof send, Database, typeof queue>) => {
      seen.push(job);
      if (fail) throw new Error('not now');
    });
    await drain(db, { queue, handlers: [handler], deadlineMs: 20_000 });
    expect(seen).toMatchObject([values]);
    expect(await resultRows()).toMatchObject([{ state: 'discarded', ...values }]);
    expect(await queue.find(db, send, id)).toMatchObject({ state: 'discarded', ...values });

    expect(await queue.redrive(db, id)).toMatchObject({ redriven: 1 });
    expect(await liveRows()).toMatchObject([values]);

    fail = false;
    await runNext(db, { queue, handlers: [handler] });
    expect(seen).toMatchObject([values, values]);
    expect(await resultRows()).toMatchObject([{ state: 'completed', ...values }]);
  });

  test('that cannot be decoded fail the wait for their job at once, and no other', async () => {
    const enqueue = (word: string) =>
      queue.enqueue(db, send, { to: 'ada' }, { tenantId: 'a', words: new Set([word]) });
    const [bad, good] = [await enqueue('bad'), await enqueue('good')];
    for (const { id } of [bad, good]) await queue.cancel(db, id);
    refuseBadWords();
    const wait = (id: number) => queue.waitFor(db, send, id, { timeoutMs: 10_000 });
    const waits = await Promise.allSettled([wait(bad.id), wait(good.id)]);
    expect(waits).toMatchObject([
      { status: 'rejected', reason: { message: 'a word of a newer version' } },
      { status: 'fulfilled', value: { state: 'cancelled' } },
    ]);
  });

  test('that cannot be decoded fail the attempt of their job, and no other', async () => {
    const enqueue = (word: string) =>
      queue.enqueue(db, send, { to: 'ada' }, { tenantId: 'a', words: new Set([word]) });
    const bad = await enqueue('bad');
    for (let n = 0; n < 9; n++) await enqueue('good');
    refuseBadWords();
    const handlers = [handle(send, async () => {})];
    expect(await drain(db, { queue, handlers, deadlineMs: 20_000 })).toMatchObject({
      completed: 9,
      discarded: 1,
    });
    const error = { name: 'TypeError', message: 'a word of a newer version' };
    expect(await resultOf(bad.id)).toMatchObject([{ state: 'discarded', errors: [error] }]);

    const alone = await enqueue('bad');
    expect(await runNext(db, { queue, handlers })).toMatchObject({ outcome: 'failed', error });
    expect(await resultOf(alone.id)).toMatchObject([{ state: 'discarded', errors: [error] }]);
  });

  test('that cannot be decoded keep no one from running or cancelling their job', async () => {
    const words = new Set(['bad']);
    const { id } = await queue.enqueue(db, send, { to: 'ada' }, { tenantId: 'a', words, delayMs: 60_000 });
    refuseBadWords();
    expect(await queue.runNow(db, id)).toEqual({ due: true });
    expect(await queue.cancel(db, id)).toEqual({ cancelled: true });
    await expect(queue.find(db, id)).rejects.toThrow('a word of a newer version');
  });

  test('stay with a job that is cancelled', async () => {
    const { id } = await queue.enqueue(db, send, { to: 'ada' }, values);
    await queue.cancel(db, id);
    expect(await resultRows()).toMatchObject([{ state: 'cancelled', ...values }]);
  });

  test('in bulk, where jobs say different things and some nothing', async () => {
    const entries = [
      { payload: { to: '0' }, ...values },
      { payload: { to: '1' }, tenantId: 'b' },
      { payload: { to: '2' }, tenantId: 'c', plan: null, urgent: true, ref: values.ref },
    ];
    const expected = [values, { tenantId: 'b', ...nothing }, { tenantId: 'c', plan: null, ref: values.ref }];
    const plain = await queue.enqueueMany(db, send, entries);
    const keyed = await queue.enqueueMany(
      db,
      send,
      entries.map((entry, index) => ({ ...entry, uniqueKey: `k${2 - index}` })),
    );
    for (const [index, { id }] of [...plain, ...keyed].entries()) {
      expect(await queue.find(db, send, id)).toMatchObject({
        payload: { to: String(index % 3) },
        ...expected[index % 3],
      });
    }
  });

  test('in bulk, where all say the same', async () => {
    const entry = { payload: { to: 'ada' }, ...values };
    await queue.enqueueMany(db, send, [entry, entry]);
    expect(await liveRows()).toMatchObject([values, values]);
  });

  test.each([{}, { uniqueKey: (row: { to: unknown }) => sql`${row.to}` }])(
    'of an enqueueFrom are values or expressions (%#)',
    async (more) => {
      const select = drizzle()
        .select({ to: sql<string>`'u' || n`.as('to') })
        .from(sql`generate_series(1, 2) as n`);
      await queue.enqueueFrom(db, send, select, {
        ...more,
        tenantId: (row) => sql`'tenant of ' || ${row.to}`,
        seats: () => sql`40 + 2`,
        cents: values.cents,
        endsAt: values.endsAt,
        plan: null,
      });
      const rows = await liveRows();
      expect(rows).toHaveLength(2);
      for (const row of rows) {
        const { to } = row.payload as { to: string };
        expect(row).toMatchObject({
          ...nothing,
          tenantId: `tenant of ${to}`,
          seats: 42,
          cents: values.cents,
          endsAt: values.endsAt,
          plan: null,
        });
      }
    },
  );

  test('filter a list, of live jobs and results', async () => {
    const a = await queue.enqueue(db, send, { to: 'a' }, values);
    const b = await queue.enqueue(db, send, { to: 'b' }, { tenantId: 'b' });
    const c = await queue.enqueue(db, sync, undefined, { tenantId: 'b', endsAt: values.endsAt });
    await queue.cancel(db, c.id);
    const listed = async (filter: Parameters<typeof queue.list>[1]) =>
      (await queue.list(db, filter)).jobs.map(({ id }) => id);
    expect(await listed({ tenantId: 'b' })).toEqual([c.id, b.id]);
    expect(await listed({ tenantId: 'b', job: send })).toEqual([b.id]);
    expect(await listed({ endsAt: values.endsAt })).toEqual([c.id, a.id]);
    expect(await listed({ endsAt: null })).toEqual([b.id]);
    expect(await listed({ rules: { a: ['x'], b: 1 }, host: values.host })).toEqual([a.id]);
    expect(await queue.redrive(db, { state: 'cancelled', rules: {} })).toMatchObject({ redriven: 0 });
    expect(await listed({ tenantId: values.tenantId, plan: 'paid', cents: values.cents })).toEqual([a.id]);
    expect(await listed({ tenantId: 'nobody' })).toEqual([]);
    expect(await listed({ tenantId: undefined })).toEqual([c.id, b.id, a.id]);
  });

  test('say which of many are cancelled, and which are put back', async () => {
    const add = async (own: { tenantId: string; seats?: number | null }) =>
      (await queue.enqueue(db, send, { to: 'ada' }, own)).id;
    const [a, b, c] = [
      await add({ tenantId: 'a', seats: 1 }),
      await add({ tenantId: 'a', seats: null }),
      await add({ tenantId: `b' or true --` }),
    ];
    const stateOf = async (id: number) => (await queue.find(db, id))?.state;
    const states = () => Promise.all([a, b, c].map(stateOf));
    expect(await queue.cancelMany(db, { tenantId: 'nobody' })).toMatchObject({ cancelled: 0 });
    expect(await queue.cancelMany(db, { tenantId: `b' or true --`, kind: 'send' })).toMatchObject({
      cancelled: 1,
    });
    expect(await queue.cancelMany(db, { tenantId: 'a', seats: null })).toMatchObject({ cancelled: 1 });
    expect(await states()).toEqual(['due', 'cancelled', 'cancelled']);
    await queue.cancel(db, a);
    const cancelled = { state: 'cancelled' } as const;
    expect(await queue.redrive(db, { ...cancelled, tenantId: 'a', seats: 2 })).toMatchObject({ redriven: 0 });
    const options = { batchSize: 1 };
    expect(await queue.redrive(db, { ...cancelled, tenantId: 'a' }, options)).toMatchObject({ redriven: 2 });
    expect(await states()).toEqual(['due', 'due', 'cancelled']);
  });

  test.each(['region', 'code'])('that are too long are refused, not cut off: %s', async (column) => {
    const long = { tenantId: 'a', [column]: 'much too long' };
    await expect(queue.enqueue(db, send, { to: 'a' }, long)).rejects.toThrow();
    expect(await liveRows()).toEqual([]);
  });

  test('can be joined and filtered with Drizzle', async () => {
    await queue.enqueueMany(db, send, [
      { payload: { to: 'a' }, tenantId: 'a' },
      { payload: { to: 'b' }, tenantId: 'b' },
    ]);
    const { queueJobs } = ownTables;
    const rows = await drizzle()
      .select({ tenantId: queueJobs.tenantId })
      .from(queueJobs)
      .where(eq(queueJobs.tenantId, 'b'));
    expect(rows).toEqual([{ tenantId: 'b' }]);
  });
});

describe('what is refused before anything is sent', () => {
  const db = untouched();
  const enqueue = (options: object) =>
    // What callers without TypeScript may send.
    queue.enqueue(db, send, { to: 'ada' }, options as unknown as { tenantId: string });

  test.each([
    [{}, 'tenantId must be given'],
    [{ tenantId: undefined }, 'tenantId must be given'],
    [{ tenantId: null }, 'tenantId must not be null'],
    [{ tenantId: 5 }, 'tenantId must be a string, got number'],
    [{ tenantId: 'a\0' }, 'NUL'],
    [{ tenantId: '\ud800' }, 'surrogate'],
    [{ tenantId: 'a', urgent: 'yes' }, 'urgent must be a boolean'],
    [{ tenantId: 'a', cents: 5 }, 'cents must be a bigint'],
    [{ tenantId: 'a', endsAt: new Date(Number.NaN) }, 'endsAt must be a valid Date'],
    [{ tenantId: 'a', endsAt: '2024-02-29' }, 'endsAt must be a valid Date'],
    [{ tenantId: 'a', tags: [undefined] }, 'undefined in an array'],
  ])('%s', async (options, message) => {
    await expect(enqueue(options)).rejects.toThrow(message);
    await expect(
      queue.enqueueMany(db, send, [{ payload: { to: 'ada' }, ...(options as { tenantId: string }) }]),
    ).rejects.toThrow(message);
  });

  test('a bulk of which one entry says too little', async () => {
    const entries = [{ payload: { to: 'a' }, tenantId: 'a' }, { payload: { to: 'b' } } as never];
    await expect(queue.enqueueMany(db, send, entries)).rejects.toThrow('tenantId must be given');
  });

  test('a filter of the wrong type', async () => {
    const wrong = { tenantId: 5 as never };
    await expect(queue.list(db, wrong)).rejects.toThrow('list: tenantId must be a string');
    await expect(queue.cancelMany(db, wrong)).rejects.toThrow('cancelMany: tenantId must be a string');
    await expect(queue.redrive(db, wrong)).rejects.toThrow('redrive: tenantId must be a string');
  });
});

test('a value that was never set does not mean every tenant', async () => {
  const unset = { tenantId: undefined as never };
  for (const change of [queue.cancelMany(untouched(), unset), queue.redrive(untouched(), unset)])
    await expect(change).rejects.toThrow('tenantId is undefined; give a value, or leave it out');
  for (const change of [queue.cancelMany(untouched(), {}), queue.redrive(untouched(), {})])
    await expect(change).rejects.toThrow(/must have one of .*tenantId/);
  const all = { all: true, tenantId: 'a' } as const;
  for (const change of [queue.cancelMany(untouched(), all), queue.redrive(untouched(), all)])
    await expect(change).rejects.toThrow('all and tenantId cannot be combined');
});

const missing = useTestDatabase();

test('own columns that are not in the database yet are a missing migration', async () => {
  const tables = createQueueTables({ columns: { shard: text('shard') } });
  await expect(checkDatabase(missing.db, tables)).rejects.toThrow('has no column shard');
  await expect(createQueue({ tables }).enqueue(missing.db, sync, undefined, { shard: 'a' })).rejects.toThrow(
    'Run `npx drizzle-kit generate',
  );
});
test('a queue takes its jobs and its results from one createQueueTables', () => {
  const { queueJobs } = createQueueTables({ columns: { shard: text('shard') } });
  expect(() => createQueue({ tables: { queueJobs, queueResults, queueWorkers, queuePauses } })).toThrow(
    'queueJobs has the column shard, but queueResults does not',
  );
});
