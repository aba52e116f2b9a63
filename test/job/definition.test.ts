import { defineJob, exponentialBackoff, fixedBackoff, UnknownKindError, unvalidated } from 'drizzle-queue';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkDefinition, type JobDefinition, type JobOptions } from '../../src/core/job/definition.ts';

describe('defineJob', () => {
  test('fills in the defaults', () => {
    const { backoff, ...rest } = defineJob('sync');
    expect(rest).toEqual({
      kind: 'sync',
      payload: undefined,
      output: undefined,
      queue: 'default',
      priority: 5,
      maxAttempts: 20,
      timeoutMs: undefined,
      keepResult: true,
    });
    // That of exponentialBackoff(): up to a second, then up to two, at random.
    const waits = Array.from({ length: 500 }, () => backoff(2, new Error()));
    expect(Math.max(...waits)).toBeGreaterThan(1_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(2_000);
  });

  test('an option that is undefined is one that was left out', () => {
    const { backoff: _, ...plain } = defineJob('sync');
    const { backoff, ...rest } = defineJob('sync', {
      payload: undefined,
      output: undefined,
      queue: undefined,
      priority: undefined,
      maxAttempts: undefined,
      timeoutMs: undefined,
      backoff: undefined,
      keepResult: undefined,
    });
    expect(rest).toEqual(plain);
    expect(backoff).toBeTypeOf('function');
  });

  test('keeps what it is told', () => {
    const options = {
      payload: z.object({ to: z.string() }),
      output: v.string(),
      queue: 'mail',
      priority: 0,
      maxAttempts: 1,
      timeoutMs: 30_000,
      backoff: fixedBackoff(5),
      keepResult: false,
    };
    expect(defineJob('send', options)).toEqual({ kind: 'send', ...options });
    expect(defineJob('send', { keepResult: 'outcome' }).keepResult).toBe('outcome');
  });

  test('takes the limits of its numbers', () => {
    expect(defineJob('a', { priority: 9, maxAttempts: 10_000, timeoutMs: 1 })).toMatchObject({
      priority: 9,
      maxAttempts: 10_000,
      timeoutMs: 1,
    });
    expect(defineJob('a', { timeoutMs: 2 ** 31 - 1 }).timeoutMs).toBe(2 ** 31 - 1);
    expect(defineJob('é'.repeat(100)).kind).toHaveLength(100);
  });

  test('takes unvalidated<T>() and any Standard Schema, also one that is a function', () => {
    const callable = Object.assign(() => undefined, { '~standard': z.string()['~standard'] });
    for (const payload of [unvalidated<string>(), v.string(), callable])
      expect(defineJob('a', { payload }).payload).toBe(payload);
  });

  test('is frozen, so that nobody changes a definition that others share', () => {
    const job: { priority: number } = defineJob('sync');
    expect(() => {
      job.priority = 1;
    }).toThrow(TypeError);
    expect(job.priority).toBe(5);
  });

  const names = 'must be a string that is not empty';
  test.each<[unknown, string]>([
    [{ payload: { to: 'string' } }, 'payload must be a Standard Schema'],
    [{ payload: null }, 'payload must be a Standard Schema'],
    [{ output: 'string' }, 'output must be a Standard Schema'],
    [{ queue: '' }, `queue ${names}, got ''`],
    [{ queue: 5 }, `queue ${names}, got 5`],
    [{ queue: 'q'.repeat(201) }, 'queue must be at most 200 bytes of UTF-8, got 201'],
    [{ queue: 'a\0' }, 'queue must not contain a NUL character'],
    [{ priority: -1 }, 'priority must be a whole number from 0 to 9, got -1'],
    [{ priority: 10 }, 'priority must be a whole number from 0 to 9, got 10'],
    [{ priority: '1' }, "priority must be a whole number from 0 to 9, got '1'"],
    [{ maxAttempts: 0 }, 'maxAttempts must be a whole number from 1 to 10000, got 0'],
    [{ maxAttempts: 10_001 }, 'maxAttempts must be a whole number from 1 to 10000, got 10001'],
    [
      { maxAttempts: Number.POSITIVE_INFINITY },
      'maxAttempts must be a whole number from 1 to 10000, got Infinity',
    ],
    [{ timeoutMs: 0 }, 'timeoutMs must be a number of milliseconds from 1 to 2147483647, got 0'],
    [
      { timeoutMs: 2 ** 31 },
      'timeoutMs must be a number of milliseconds from 1 to 2147483647, got 2147483648',
    ],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, 'got Infinity'],
    [{ backoff: 1_000 }, 'backoff must be a function, got 1000'],
    [{ backoff: { initialMs: 5 } }, 'backoff must be a function, got [object Object]'],
    [{ keepResult: 'no' }, "keepResult must be true, false or 'outcome', got 'no'"],
  ])('refuses %o, naming kind, option and value', (options, message) => {
    const define = () => defineJob('send', options as JobOptions);
    expect(define).toThrow(/^defineJob\('send'\): /);
    expect(define).toThrow(message);
  });

  test.each([
    ['', "got ''"],
    [undefined, 'got undefined'],
    ['k'.repeat(201), 'at most 200 bytes'],
    ['a\0', 'NUL'],
  ])('refuses the kind %j', (kind, message) => {
    expect(() => defineJob(kind as string)).toThrow(/^defineJob: kind must /);
    expect(() => defineJob(kind as string)).toThrow(message);
  });

  test('the default backoff is its own for each definition', () => {
    // Not shared state: a backoff function keeps none, and two definitions may differ.
    expect(defineJob('a').backoff).not.toBe(defineJob('b').backoff);
    const backoff = exponentialBackoff();
    expect(defineJob('a', { backoff }).backoff).toBe(backoff);
  });
});

describe('checkDefinition', () => {
  test('lets definitions pass, also those of another copy of this library', () => {
    expect(() => checkDefinition('enqueue', defineJob('a'))).not.toThrow();
    expect(() => checkDefinition('enqueue', { ...defineJob('a') })).not.toThrow();
  });

  test.each([
    ['send', "the text 'send'"],
    [undefined, 'undefined'],
    [null, 'null'],
    [5, '5'],
    [{ kind: 'send' }, '[object Object]'],
    [{ kind: 5, maxAttempts: 1 }, '[object Object]'],
  ])('refuses %o and says what it got', (value, shown) => {
    const check = () => checkDefinition('enqueue', value as unknown as JobDefinition);
    expect(check).toThrow(UnknownKindError);
    expect(check).toThrow(`enqueue takes a job definition that defineJob() returned; got ${shown}`);
  });
});
