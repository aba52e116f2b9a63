import { sql } from 'drizzle-orm';
import {
  createQueue,
  defineJob,
  type Transaction,
  unvalidated,
  WaitTimeoutError,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { claim, clearTables, idsOf, jobRow } from '../queries/support/jobs.ts';
import { begin, commit, rollback, twoBackends } from '../queries/support/locks.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { recording } from './support/executors.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const queue = createQueue();
const sendReceipt = defineJob('send-receipt', {
  payload: z.object({ orderId: z.number() }),
  queue: 'mail',
  priority: 3,
  maxAttempts: 7,
});
const plain = defineJob('plain');
const anything = defineJob('anything', { payload: unvalidated<unknown>() });

/** How many jobs another connection sees. */
async function visible(): Promise<number> {
  const [row] = await database.client<{ n: number }[]>`select count(*)::int as n from queue_jobs`;
  return Number(row?.n);
}

/** When the job is due, in milliseconds after it was created, both by the database's clock. */
async function delayOf(id: number): Promise<number> {
  const [row] = await database.client<{ ms: number }[]>`
    select (extract(epoch from run_at - created_at) * 1000)::float8 as ms from queue_jobs where id = ${id}`;
  return Number(row?.ms);
}

describe('a queue that requires a transaction', () => {
  const strict = createQueue({ requireTransaction: true });

  test.each<[string, (db: Transaction) => Promise<unknown>]>([
    ['enqueue', (db) => strict.enqueue(db, plain)],
    ['enqueueMany', (db) => strict.enqueueMany(db, plain, [{}])],
    [
      'enqueueFrom',
      (db) =>
        strict.enqueueFrom(db, anything, database.db.select({ a: sql`1`.as('a') }).from(sql`(values (1)) v`)),
    ],
  ])(
    '%s refuses a plain db and says what to write, and takes a transaction and a savepoint',
    async (name, enqueue) => {
      // Types refuse it, too.
      await expect(enqueue(database.db as unknown as Transaction)).rejects.toThrow(
        `${name}: this queue requires a transaction (createQueue({ requireTransaction: true })): ` +
          `db.transaction((tx) => queue.${name}(tx, …))`,
      );
      expect(await visible()).toBe(0);
      await database.db.transaction(enqueue);
      await database.db.transaction((tx) => tx.transaction(enqueue));
      expect(await visible()).toBe(2);
    },
  );

  test.each(['enqueueFlow', 'enqueueBatch'] as const)('%s refuses a plain db as well', async (name) => {
    const { workflows } = createQueue({ requireTransaction: true, workflows: workflowsIn(workflowTables) });
    const enqueued = {
      enqueueFlow: () => workflows.enqueueFlow(database.db, (flow) => void flow.add(plain)),
      enqueueBatch: () => workflows.enqueueBatch(database.db, plain, [{}], { last: plain }),
    }[name]();
    await expect(enqueued).rejects.toThrow(
      `workflows.${name}: this queue requires a transaction (createQueue({ requireTransaction: true })): ` +
        `db.transaction((tx) => queue.workflows.${name}(tx, …))`,
    );
  });

  test('lets run and enqueueQuery have a db: neither can take a transaction', async () => {
    await strict.enqueueQuery(database.db, plain);
    await expect(strict.run(database.db, plain, undefined, { timeoutMs: 100 })).rejects.toThrow(
      WaitTimeoutError,
    );
    expect(await visible()).toBe(2);
  });

  test('is a boolean', () => {
    // As it may come from an environment.
    const options = { requireTransaction: 'yes' as unknown as boolean };
    expect(() => createQueue(options)).toThrow(/requireTransaction must be true or false/);
  });
});

describe('the caller’s transaction', () => {
  test('a commit shows the job, to others and to claims; before it nobody sees it', async () => {
    const [one, two] = await twoBackends(database);
    await begin(one);
    const { id, duplicate } = await queue.enqueue(one.db, anything, 1, { queue: 'q' });
    expect(duplicate).toBe(false);
    expect(await queue.find(one.db, id)).toMatchObject({ state: 'due' });
    expect(await visible()).toBe(0);
    expect(await claim(two.db, { kinds: ['anything'] })).toEqual([]);
    await commit(one);
    expect(idsOf(await claim(two.db, { kinds: ['anything'] }))).toEqual([id]);
  });

  test('a rollback leaves no job', async () => {
    const failure = new Error('the order was refused');
    const transaction = database.db.transaction(async (tx) => {
      await queue.enqueue(tx, sendReceipt, { orderId: 1 });
      await queue.enqueueMany(tx, sendReceipt, [{ payload: { orderId: 2 } }]);
      throw failure;
    });
    await expect(transaction).rejects.toBe(failure);
    expect(await visible()).toBe(0);
  });

  test('a rollback to a savepoint takes back what was enqueued after it', async () => {
    await database.db.transaction(async (tx) => {
      await queue.enqueue(tx, sendReceipt, { orderId: 1 });
      const undone = tx.transaction(async (inner) => {
        await queue.enqueue(inner, sendReceipt, { orderId: 2 });
        throw new Error('undo');
      });
      await expect(undone).rejects.toThrow('undo');
    });
    expect(await database.client`select payload from queue_jobs`).toMatchObject([
      { payload: { orderId: 1 } },
    ]);
  });

  test('one statement, and no connection but the caller’s', async () => {
    const [one] = await twoBackends(database);
    await begin(one);
    const db = recording(one.db);
    await queue.enqueue(db, sendReceipt, { orderId: 1 }, { uniqueKey: 'u' });
    expect(db.sent).toHaveLength(1);
    await rollback(one);
    expect(await visible()).toBe(0);
  });
});

describe('options', () => {
  test('without any, the definition’s; due now', async () => {
    const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 1 });
    expect(await jobRow(database.client, id)).toMatchObject({
      queue: 'mail',
      kind: 'send-receipt',
      payload: { orderId: 1 },
      priority: 3,
      max_attempts: 7,
      attempt: 0,
      worker_id: null,
      unique_key: null,
      errors: [],
      metadata: {},
    });
    expect(await delayOf(id)).toBe(0);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due' });
  });

  test('all of them', async () => {
    const { id } = await queue.enqueue(
      database.db,
      sendReceipt,
      { orderId: 1 },
      {
        delayMs: 90_000,
        priority: 0,
        maxAttempts: 1,
        queue: 'other',
        uniqueKey: 'order-1',
        metadata: { tenant: 'ü', trace: [1, null] },
      },
    );
    expect(await jobRow(database.client, id)).toMatchObject({
      queue: 'other',
      priority: 0,
      max_attempts: 1,
      unique_key: 'order-1',
      metadata: { tenant: 'ü', trace: [1, null] },
    });
    expect(await delayOf(id)).toBe(90_000);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'scheduled' });
  });

  test('given as undefined are as if not given', async () => {
    const { id } = await queue.enqueue(
      database.db,
      sendReceipt,
      { orderId: 1 },
      {
        delayMs: undefined,
        runAt: undefined,
        priority: undefined,
        maxAttempts: undefined,
        queue: undefined,
        uniqueKey: undefined,
        metadata: undefined,
      },
    );
    expect(await jobRow(database.client, id)).toMatchObject({ queue: 'mail', priority: 3, max_attempts: 7 });
  });

  test('delayMs counts from now by the database’s clock, not from the transaction’s begin', async () => {
    const [one] = await twoBackends(database);
    await begin(one);
    // When the transaction began. A cluster asks the node of the job's queue, where another one began later.
    const [began] = await one.client<{ at: string }[]>`select now()::text as at`;
    const { id } = await queue.enqueue(one.db, plain, undefined, { delayMs: 1_000 });
    const [row] = await one.client`
      select run_at > ${began?.at ?? ''}::text::timestamptz + interval '1 s' as later,
        run_at <= clock_timestamp() + interval '1 s' as not_too_late
      from queue_jobs`;
    expect(row).toEqual({ later: true, not_too_late: true });
    await commit(one);
    expect(await delayOf(id)).toBe(1_000);
  });

  test('delayMs and the time of the enqueue do not depend on the process’s clock', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 0 });
    try {
      await queue.enqueue(database.db, plain, undefined, { delayMs: 60_000 });
    } finally {
      vi.useRealTimers();
    }
    const [row] = await database.client`
      select created_at > clock_timestamp() - interval '20 s' as fresh, run_at > clock_timestamp() as scheduled
      from queue_jobs`;
    expect(row).toEqual({ fresh: true, scheduled: true });
  });

  test('runAt in the past means now, before jobs that became due later', async () => {
    const first = await queue.enqueue(database.db, anything, 1, { queue: 'q' });
    const second = await queue.enqueue(database.db, anything, 2, {
      queue: 'q',
      runAt: new Date('2020-01-01'),
    });
    const third = await queue.enqueue(database.db, anything, 3, { queue: 'q', runAt: new Date(0) });
    const record = await queue.find(database.db, second.id);
    expect(record).toMatchObject({ state: 'due', runAt: new Date('2020-01-01') });
    const claimed = await claim(database.db, { kinds: ['anything'], limit: 3 });
    expect(idsOf(claimed)).toEqual([third.id, second.id, first.id]);
  });

  test('runAt in the future schedules, to the millisecond', async () => {
    const runAt = new Date('2999-12-31T23:59:59.999Z');
    const { id } = await queue.enqueue(database.db, plain, undefined, { runAt });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'scheduled', runAt });
  });

  test('the longest texts that are allowed', async () => {
    const long = defineJob('k'.repeat(200), { queue: 'ü'.repeat(100) });
    const uniqueKey = Array.from({ length: 2_000 }, () => Math.floor(Math.random() * 36).toString(36)).join(
      '',
    );
    const first = await queue.enqueue(database.db, long, undefined, { uniqueKey });
    expect(await queue.enqueue(database.db, long, undefined, { uniqueKey })).toEqual({
      id: first.id,
      duplicate: true,
      outcome: 'duplicate',
    });
  });
});

test('a job without a payload takes none, and its payload is null', async () => {
  const { id } = await queue.enqueue(database.db, plain);
  expect(await queue.find(database.db, plain, id)).toMatchObject({ payload: null });
});
