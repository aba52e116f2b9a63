import {
  cancel,
  createQueue,
  defineJob,
  fail,
  fixedBackoff,
  handle,
  handleBatch,
  InvalidOutputError,
  InvalidPayloadError,
  JobTimeoutError,
  LeaseLostError,
  NonRetryableError,
  snooze,
  type Transaction,
} from 'drizzle-queue';
import { runHandler } from 'drizzle-queue/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';

const send = defineJob('send', {
  payload: z.object({ orderId: z.number(), at: z.coerce.date() }),
  output: z.object({ messageId: z.string() }),
  queue: 'mail',
  maxAttempts: 3,
  backoff: fixedBackoff(1_500),
});
const plain = defineJob('plain', { timeoutMs: 30 });
const payload = { orderId: 1, at: '2027-01-01T00:00:00.000Z' };

describe('runHandler', () => {
  test('hands the handler what a worker does, and returns what would be stored', async () => {
    const run = await runHandler(send, { payload, attempt: 2 }, ({ payload, job }) => {
      expect(payload).toEqual({ orderId: 1, at: new Date('2027-01-01') });
      expect(job).toMatchObject({ queue: 'mail', kind: 'send', attempt: 2, maxAttempts: 3, errors: [] });
      job.progress({ percent: 50 });
      job.progress(new Date(0));
      return { messageId: 'm1' };
    });
    expect(run).toMatchObject({
      outcome: 'completed',
      output: { messageId: 'm1' },
      error: undefined,
      discarded: false,
      retryInMs: undefined,
      committed: false,
      progress: [{ percent: 50 }, '1970-01-01T00:00:00.000Z'],
    });
    expect(run.signal.aborted).toBe(false);
  });

  test('takes what handle returns, and a database or a fake', async () => {
    const db = { select: () => 'rows' };
    const handler = handle(plain, (context) => Reflect.get(Object(context.db), 'select')());
    // @ts-expect-error it is no database
    expect(await runHandler(plain, { db }, handler)).toMatchObject({ output: 'rows' });
    const typed = await runHandler(plain, { db }, ({ db }) => db.select());
    expect(typed.output).toBe('rows');
  });

  test('returns an error, and when the job would run again', async () => {
    const failing = () => {
      throw new Error('no');
    };
    const first = await runHandler(send, { payload }, failing);
    expect(first).toMatchObject({ outcome: 'failed', discarded: false, retryInMs: 1_500 });
    expect(first.error).toEqual(new Error('no'));
    expect(await runHandler(send, { payload, attempt: 3 }, failing)).toMatchObject({
      outcome: 'failed',
      discarded: true,
      retryInMs: undefined,
    });
    const final = () => fail(new NonRetryableError('never'));
    expect(await runHandler(send, { payload }, final)).toMatchObject({ outcome: 'failed', discarded: true });
  });

  test('tells a snooze and a cancel', async () => {
    expect(await runHandler(plain, {}, () => snooze(60_000))).toMatchObject({
      outcome: 'snoozed',
      retryInMs: 60_000,
    });
    expect(await runHandler(plain, {}, () => cancel('gone'))).toMatchObject({
      outcome: 'cancelled',
      reason: 'gone',
      retryInMs: undefined,
    });
  });

  test('refuses a payload that no enqueue takes, and fails the attempt for a stored one', async () => {
    const wrong = { orderId: 'one', at: payload.at };
    // @ts-expect-error a text
    await expect(runHandler(send, { payload: wrong }, () => ({ messageId: 'm' }))).rejects.toThrow(
      InvalidPayloadError,
    );
    const run = await runHandler(send, { stored: wrong }, () => ({ messageId: 'm' }));
    expect(run).toMatchObject({ outcome: 'failed', error: expect.any(InvalidPayloadError) });
  });

  test('fails the attempt for a wrong output', async () => {
    // @ts-expect-error no output
    const run = await runHandler(send, { payload }, () => ({ messageId: 7 }));
    expect(run).toMatchObject({ outcome: 'failed', error: expect.any(InvalidOutputError), retryInMs: 1_500 });
  });

  test('ends a handler that takes too long, whose signal is aborted', async () => {
    const run = await runHandler(plain, {}, () => new Promise<void>(() => {}));
    expect(run).toMatchObject({ outcome: 'failed', error: expect.any(JobTimeoutError) });
    expect(run.signal.reason).toBe(run.error);
  });

  test('interrupts the handler when its worker stops', async () => {
    const slow = defineJob('slow');
    const stop = new AbortController();
    const run = runHandler(slow, { signal: stop.signal }, async ({ signal }) => {
      stop.abort(new Error('deploy'));
      signal.throwIfAborted();
    });
    expect(await run).toMatchObject({ outcome: 'interrupted', retryInMs: undefined });
    const aborted = await runHandler(slow, { signal: AbortSignal.abort() }, ({ signal }) => {
      signal.throwIfAborted();
    });
    expect(aborted.outcome).toBe('interrupted');
    const heedless = await runHandler(slow, { signal: AbortSignal.abort() }, () => 'done');
    expect(heedless).toMatchObject({ outcome: 'completed', output: 'done' });
  });

  test('keeps what complete(tx) is given, validated', async () => {
    // Nothing is sent on it.
    const tx = {} as Transaction;
    const run = await runHandler(send, { payload }, async ({ complete }) => {
      await complete(tx, { messageId: 'm2' });
    });
    expect(run).toMatchObject({ outcome: 'completed', output: { messageId: 'm2' }, committed: true });
    const twice = await runHandler(send, { payload }, async ({ complete }) => {
      await complete(tx, { messageId: 'm2' });
      await complete(tx, { messageId: 'm3' });
    });
    expect(twice.error).toBeInstanceOf(LeaseLostError);
    const wrong = await runHandler(send, { payload }, async ({ complete }) => {
      // @ts-expect-error no output
      await complete(tx, { messageId: 3 });
    });
    expect(wrong).toMatchObject({
      outcome: 'failed',
      committed: false,
      error: expect.any(InvalidOutputError),
    });
  });

  test('runs inside around.run of a queue', async () => {
    const seen: string[] = [];
    const queue = createQueue({
      around: {
        run: async ({ job }, next) => {
          seen.push(`before ${job.kind}`);
          await next();
          seen.push('after');
        },
      },
    });
    await runHandler(plain, { queue }, () => void seen.push('run'));
    expect(seen).toEqual(['before plain', 'run', 'after']);
  });

  test('says that it has no database', async () => {
    const run = await runHandler(plain, {}, ({ db }) => db.execute as never);
    expect(run.error).toMatchObject({
      message: 'runHandler has no database, and the handler uses its execute: give it a db',
    });
  });

  test('shows the handler what is given of its job', async () => {
    const errors = [{ attempt: 1, name: 'Error', message: 'before', at: new Date(0).toISOString() }];
    const run = await runHandler(
      plain,
      { attempt: 2, job: { id: 7, errors, metadata: { trace: 'a' } } },
      ({ job }) => [job.id, job.errors[0]?.message, job.metadata],
    );
    expect(run.output).toEqual([7, 'before', { trace: 'a' }]);
  });

  test('refuses wrong arguments', async () => {
    const refused = (options: object, handler: unknown = () => undefined) =>
      runHandler(plain, options, handler as () => undefined);
    await expect(refused({ attempts: 1 })).rejects.toThrow("runHandler: unknown option 'attempts'");
    await expect(refused({ attempt: 21 })).rejects.toThrow('runHandler: attempt must be a whole number');
    await expect(refused({ payload: 1, stored: 1 })).rejects.toThrow('payload and stored cannot be combined');
    await expect(refused({}, 'handler')).rejects.toThrow(
      'runHandler takes a function, or what handle returns',
    );
    await expect(
      refused(
        {},
        handle(send, () => ({ messageId: '' })),
      ),
    ).rejects.toThrow("runHandler: the handler is of 'send', not of 'plain'");
    await expect(
      refused(
        {},
        handleBatch(plain, {}, () => {}),
      ),
    ).rejects.toThrow('is a batch handler');
  });
});
