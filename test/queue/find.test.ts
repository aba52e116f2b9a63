import { createQueue, defineJob } from 'drizzle-queue';
import { beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { addJob, clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase();
const queue = createQueue();
const sendReceipt = defineJob('send-receipt', {
  payload: z.object({ orderId: z.number() }),
  output: z.object({ messageId: z.string() }),
  queue: 'q',
});
const other = defineJob('other', { queue: 'q' });
const resize = defineJob('resize', {
  payload: z.object({ url: z.string() }),
  queue: 'q',
  keepResult: 'outcome',
});

beforeEach(() => clearTables(database.client));

describe('a job in every state', () => {
  test('due', async () => {
    const { id } = await queue.enqueue(
      database.db,
      sendReceipt,
      { orderId: 7 },
      { uniqueKey: 'u', metadata: { a: 1 } },
    );
    const record = await queue.find(database.db, sendReceipt, id);
    expect(record).toEqual({
      id,
      queue: 'q',
      kind: 'send-receipt',
      state: 'due',
      payload: { orderId: 7 },
      priority: 5,
      attempt: 0,
      maxAttempts: 20,
      uniqueKey: 'u',
      group: null,
      metadata: { a: 1 },
      errors: [],
      createdAt: record?.createdAt,
      runAt: record?.createdAt,
      progress: null,
      cancelReason: null,
    });
    expect(record?.createdAt).toBeInstanceOf(Date);
    expectTypeOf(record?.payload).toEqualTypeOf<{ orderId: number } | undefined>();
    expectTypeOf(record?.kind).toEqualTypeOf<'send-receipt' | undefined>();
  });

  test('scheduled', async () => {
    const runAt = new Date('2999-01-01T00:00:00.001Z');
    const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 }, { runAt });
    expect(await queue.find(database.db, sendReceipt, id)).toMatchObject({ state: 'scheduled', runAt });
  });

  test('running, also when its run_at is not reached', async () => {
    const id = await addJob(database.client, { workerId: 9, attempt: 2, dueInMs: 60_000 });
    const record = await queue.find(database.db, id);
    expect(record).toMatchObject({ state: 'running', workerId: 9, attempt: 2, claimedAt: expect.any(Date) });
    expect(record).not.toHaveProperty('finishedAt');
  });

  test('completed, with its output', async () => {
    const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
    await endJob(database.db, { output: { messageId: 'm' } });
    const record = await queue.find(database.db, sendReceipt, id);
    expect(record).toMatchObject({
      id,
      state: 'completed',
      output: { messageId: 'm' },
      payload: { orderId: 7 },
      attempt: 1,
      workerId: 1,
      claimedAt: expect.any(Date),
      finishedAt: expect.any(Date),
    });
    if (record?.state === 'completed') expectTypeOf(record.output).toEqualTypeOf<{ messageId: string }>();
  });

  test('completed, where only the outcome is kept: without its payload, which is not one of null', async () => {
    const { id } = await queue.enqueue(database.db, resize, { url: 'a' });
    const { id: kept } = await queue.enqueue(database.db, other);
    await endJob(database.db, { kind: 'resize', output: { width: 3 }, keepResult: 'outcome' });
    await endJob(database.db, { kind: 'other' });
    const record = await queue.find(database.db, resize, id);
    expect(record).toMatchObject({ state: 'completed', output: { width: 3 }, attempt: 1, workerId: 1 });
    expect(record).toHaveProperty('payload', undefined);
    expect(await queue.find(database.db, other, kept)).toHaveProperty('payload', null);
    expect((await queue.list(database.db, { queue: 'q' })).jobs.map(({ payload }) => payload)).toEqual([
      null,
      undefined,
    ]);
    expect((await queue.list(database.db, { payload: { url: 'a' } })).jobs).toEqual([]);
    if (record?.state === 'completed') {
      expectTypeOf(record.payload).toEqualTypeOf<{ url: string } | undefined>();
    }
  });

  test('discarded, with its errors, and no output', async () => {
    const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
    await endJob(database.db, { state: 'discarded' });
    const record = await queue.find(database.db, sendReceipt, id);
    expect(record).toMatchObject({ state: 'discarded', errors: [{ attempt: 1, message: 'no' }] });
    expect(record).not.toHaveProperty('output');
  });

  test('cancelled while it waited: nobody ever held it', async () => {
    const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
    await queue.cancel(database.db, id);
    expect(await queue.find(database.db, sendReceipt, id)).toMatchObject({
      state: 'cancelled',
      workerId: null,
      claimedAt: null,
      attempt: 0,
    });
  });
});

test('what is not there is undefined: no such id, completed without a kept result, of another kind', async () => {
  expect(await queue.find(database.db, 999_999)).toBeUndefined();
  const { id } = await queue.enqueue(database.db, other);
  expect(await queue.find(database.db, sendReceipt, id)).toBeUndefined();
  expect(await queue.find(database.db, other, id)).toMatchObject({ id });
  expect(await queue.find(database.db, id)).toMatchObject({ id, kind: 'other' });
  await endJob(database.db, { kind: 'other', keepResult: false });
  expect(await queue.find(database.db, id)).toBeUndefined();
});
