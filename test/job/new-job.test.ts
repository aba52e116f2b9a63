import { defineJob, type EnqueueOptions, InvalidPayloadError, unvalidated } from 'drizzle-queue';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { MAX_DELAY_MS } from '../../src/core/job/limits.ts';
import { newJob as make } from '../../src/core/job/new-job.ts';

/** As a promise also where the schema answers at once. */
const newJob = async (...args: Parameters<typeof make>) => await make(...args);

const job = defineJob('send', {
  payload: z.object({ to: z.string() }),
  queue: 'mail',
  priority: 2,
  maxAttempts: 7,
});
const payload = { to: 'ada' };

test('a new job is what its definition says, due now', async () => {
  expect(await newJob(job, payload)).toEqual({
    queue: 'mail',
    kind: 'send',
    payload: '{"to":"ada"}',
    priority: 2,
    maxAttempts: 7,
    delayMs: 0,
    runAtMs: null,
    uniqueKey: null,
    metadata: '{}',
  });
});

test('an enqueue may say everything differently but kind and payload', async () => {
  const options = {
    queue: 'slow',
    priority: 0,
    maxAttempts: 1,
    delayMs: 1_500,
    uniqueKey: 'order-7',
    metadata: { trace: 'abc', nested: { a: [1] } },
  };
  expect(await newJob(job, payload, options)).toEqual({
    queue: 'slow',
    kind: 'send',
    payload: '{"to":"ada"}',
    priority: 0,
    maxAttempts: 1,
    delayMs: 1_500,
    runAtMs: null,
    uniqueKey: 'order-7',
    metadata: '{"trace":"abc","nested":{"a":[1]}}',
  });
});

test('an option that is undefined is one that was left out', async () => {
  const options: EnqueueOptions = {
    delayMs: undefined,
    runAt: undefined,
    priority: undefined,
    maxAttempts: undefined,
    queue: undefined,
    uniqueKey: undefined,
    metadata: undefined,
  };
  expect(await newJob(job, payload, options)).toEqual(await newJob(job, payload));
});

test('a time is kept to the millisecond, in the past as well', async () => {
  expect(await newJob(job, payload, { runAt: new Date(1_234) })).toMatchObject({
    runAtMs: 1_234,
    delayMs: 0,
  });
  expect(await newJob(job, payload, { runAt: new Date(-5) })).toMatchObject({ runAtMs: -5 });
});

test('a job without payload has null', async () => {
  expect(await newJob(defineJob('sync'), undefined)).toMatchObject({ payload: 'null' });
});

describe('what is refused', () => {
  test.each<[unknown, new () => Error, string]>([
    [{ queue: '' }, TypeError, "queue must be a string that is not empty, got ''"],
    [{ queue: 'q'.repeat(201) }, TypeError, 'queue must be at most 200 bytes of UTF-8, got 201'],
    [{ priority: 10 }, RangeError, 'priority must be a whole number from 0 to 9, got 10'],
    [{ priority: 1.5 }, RangeError, 'priority must be a whole number from 0 to 9, got 1.5'],
    [{ maxAttempts: 0 }, RangeError, 'maxAttempts must be a whole number from 1 to 10000, got 0'],
    [
      { delayMs: -1 },
      RangeError,
      `delayMs must be a number of milliseconds from 0 to ${MAX_DELAY_MS}, got -1`,
    ],
    [{ delayMs: '1h' }, RangeError, 'delayMs must be a number of milliseconds'],
    [{ runAt: new Date(Number.NaN) }, RangeError, 'runAt must be a valid Date'],
    [
      { runAt: '2030-01-01' },
      RangeError,
      "runAt must be a valid Date between the years 1 and 9999, got '2030-01-01'",
    ],
    [{ delayMs: 0, runAt: new Date(0) }, TypeError, 'delayMs and runAt cannot be combined'],
    [{ uniqueKey: '' }, TypeError, "uniqueKey must be a string that is not empty, got ''"],
    [{ uniqueKey: 7 }, TypeError, 'uniqueKey must be a string that is not empty, got 7'],
    [{ uniqueKey: 'é'.repeat(1_001) }, TypeError, 'uniqueKey must be at most 2000 bytes of UTF-8, got 2002'],
    // What `slice` leaves of an emoji; Postgres would refuse it in the middle of the caller's transaction.
    [
      { uniqueKey: '\u{1f600}'.slice(0, 1) },
      TypeError,
      'uniqueKey must not contain half of a surrogate pair',
    ],
    [{ metadata: [] }, TypeError, 'metadata must be an object'],
    [{ metadata: null }, TypeError, 'metadata must be an object'],
    [{ metadata: 'trace' }, TypeError, 'metadata must be an object'],
    [{ metadata: new Date(0) }, TypeError, 'metadata must be an object'],
  ])('%o', async (options, error, message) => {
    const refused = newJob(job, payload, options as EnqueueOptions);
    await expect(refused).rejects.toBeInstanceOf(error);
    await expect(refused).rejects.toThrow(`enqueue('send'): ${message}`);
  });

  test('a payload that its schema refuses', async () => {
    await expect(newJob(job, { to: 5 } as never)).rejects.toBeInstanceOf(InvalidPayloadError);
  });

  test('a payload that jsonb cannot keep, with the path in it', async () => {
    const free = defineJob('free', { payload: unvalidated<unknown>() });
    await expect(newJob(free, { a: ['\0'] })).rejects.toMatchObject({ issues: [{ path: 'a[0]' }] });
  });

  test('metadata that jsonb cannot keep, with the path from there', async () => {
    const refused = newJob(job, payload, { metadata: { trace: { id: 1n } } });
    await expect(refused).rejects.toBeInstanceOf(InvalidPayloadError);
    await expect(refused).rejects.toMatchObject({ kind: 'send', issues: [{ path: 'metadata.trace.id' }] });
    const itself = newJob(job, payload, { metadata: new Map() as never });
    await expect(itself).rejects.toMatchObject({ issues: [{ path: 'metadata' }] });
  });
});
