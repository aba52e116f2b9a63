import {
  type Backoff,
  defineJob,
  exponentialBackoff,
  fixedBackoff,
  type JobDefinition,
  type OutputInput,
  type Payload,
  type PayloadInput,
  unvalidated,
} from 'drizzle-queue';
import * as v from 'valibot';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';

describe('what a definition knows about its payload', () => {
  test('the kind is literal', () => {
    expectTypeOf(defineJob('send').kind).toEqualTypeOf<'send'>();
    expectTypeOf(defineJob('send', { payload: z.string() }).kind).toEqualTypeOf<'send'>();
  });

  test('enqueue takes what the schema takes, a handler gets what it makes of it', () => {
    const job = defineJob('resize', {
      payload: z.object({
        width: z.string().transform(Number),
        unit: z.enum(['px', 'em']).default('px'),
        at: z.iso.datetime().pipe(z.coerce.date()),
      }),
    });
    expectTypeOf<PayloadInput<typeof job>>().toEqualTypeOf<{
      width: string;
      unit?: 'px' | 'em' | undefined;
      at: string;
    }>();
    expectTypeOf<Payload<typeof job>>().toEqualTypeOf<{ width: number; unit: 'px' | 'em'; at: Date }>();
  });

  test('the same with valibot', () => {
    const job = defineJob('resize', {
      payload: v.object({ width: v.pipe(v.string(), v.transform(Number)), note: v.optional(v.string()) }),
    });
    expectTypeOf<PayloadInput<typeof job>>().toEqualTypeOf<{ width: string; note?: string | undefined }>();
    expectTypeOf<Payload<typeof job>>().toEqualTypeOf<{ width: number; note?: string | undefined }>();
  });

  test('unvalidated<T>() is T on both sides', () => {
    const job = defineJob('resize', { payload: unvalidated<{ id: number }>() });
    expectTypeOf<PayloadInput<typeof job>>().toEqualTypeOf<{ id: number }>();
    expectTypeOf<Payload<typeof job>>().toEqualTypeOf<{ id: number }>();
  });

  test('without a schema there is no payload', () => {
    for (const job of [defineJob('sync'), defineJob('sync', { payload: undefined })]) {
      expectTypeOf<PayloadInput<typeof job>>().toEqualTypeOf<undefined>();
      expectTypeOf<Payload<typeof job>>().toEqualTypeOf<undefined>();
    }
    const withOptions = defineJob('sync', { queue: 'mail', output: z.string() });
    expectTypeOf<PayloadInput<typeof withOptions>>().toEqualTypeOf<undefined>();
  });

  test('of a definition that is not known, it is unknown', () => {
    expectTypeOf<PayloadInput<JobDefinition>>().toEqualTypeOf<unknown>();
    expectTypeOf<Payload<JobDefinition>>().toEqualTypeOf<unknown>();
    expectTypeOf<OutputInput<JobDefinition>>().toEqualTypeOf<unknown>();
  });
});

describe('what a definition knows about its output', () => {
  test('it is what the schema takes, or anything', () => {
    const job = defineJob('send', { output: z.object({ id: z.string(), at: z.coerce.number<string>() }) });
    expectTypeOf<OutputInput<typeof job>>().toEqualTypeOf<{ id: string; at: string }>();
    const free = defineJob('send', { payload: z.string() });
    expectTypeOf<OutputInput<typeof free>>().toEqualTypeOf<unknown>();
  });
});

describe('group and cost of a definition', () => {
  test('are functions of what enqueue takes', () => {
    const job = defineJob('export', {
      payload: z.object({ tenant: z.string(), rows: z.string().transform(Number) }),
      group: (payload) => {
        expectTypeOf(payload).toEqualTypeOf<{ tenant: string; rows: string }>();
        return payload.tenant;
      },
      cost: ({ rows }) => {
        expectTypeOf(rows).toEqualTypeOf<string>();
        return Number(rows);
      },
    });
    expectTypeOf<PayloadInput<typeof job>>().toEqualTypeOf<{ tenant: string; rows: string }>();
    expectTypeOf(job).toExtend<JobDefinition>();
  });

  test('before the schema, as well, and with others', () => {
    const job = defineJob('export', {
      group: (payload) => payload.tenant,
      payload: v.object({ tenant: v.string() }),
    });
    expectTypeOf<PayloadInput<typeof job>>().toEqualTypeOf<{ tenant: string }>();
    defineJob('export', { payload: unvalidated<{ tenant: string }>(), group: ({ tenant }) => tenant });
  });

  test('without a payload get none', () => {
    const job = defineJob('sync', {
      group: (payload) => {
        expectTypeOf(payload).toEqualTypeOf<undefined>();
        return 'all';
      },
    });
    expectTypeOf<PayloadInput<typeof job>>().toEqualTypeOf<undefined>();
  });

  test('are checked', () => {
    // @ts-expect-error a text
    defineJob('export', { payload: z.string(), group: () => 5 });
    // @ts-expect-error not yet there
    defineJob('export', { payload: z.string(), group: async (payload) => payload });
    // @ts-expect-error no such field
    defineJob('export', { payload: z.object({ a: z.string() }), group: ({ b }) => b });
    // @ts-expect-error a number
    defineJob('export', { payload: z.string(), cost: (payload) => payload });
    // @ts-expect-error a function
    defineJob('export', { payload: z.string(), group: 'acme' });
  });
});

describe('definitions among each other', () => {
  test('every definition is a JobDefinition', () => {
    const brief = defineJob('brief', { payload: z.string(), keepResult: 'outcome' });
    expectTypeOf(brief).toExtend<JobDefinition<'brief'>>();
    expectTypeOf(brief.keepResult).toEqualTypeOf<'outcome'>();
    expectTypeOf<PayloadInput<typeof brief>>().toEqualTypeOf<string>();
    const plain = defineJob('plain');
    expectTypeOf(plain).toEqualTypeOf<JobDefinition<'plain', undefined, undefined>>();
    expectTypeOf(defineJob('a')).toExtend<JobDefinition>();
    const b = defineJob('b', { payload: z.string().transform(Number), output: v.number() });
    expectTypeOf(b).toExtend<JobDefinition>();
    expectTypeOf(b).not.toExtend<JobDefinition<'a'>>();
  });

  test('it cannot be changed', () => {
    const job = defineJob('send');
    // @ts-expect-error read-only
    job.queue = 'other';
    // @ts-expect-error read-only
    job.maxAttempts = 1;
  });
});

describe('the options of defineJob', () => {
  test('undefined is as good as left out', () => {
    const maybe = undefined as number | undefined;
    defineJob('send', {
      queue: undefined,
      priority: maybe,
      maxAttempts: maybe,
      timeoutMs: maybe,
      backoff: undefined,
      keepResult: undefined,
    });
    exponentialBackoff({ initialMs: maybe, maxMs: maybe, factor: maybe, random: undefined });
  });

  test('a backoff is a function of attempt and error', () => {
    defineJob('send', { backoff: (attempt, error) => (error instanceof Error ? attempt * 1_000 : 0) });
    expectTypeOf(exponentialBackoff()).toEqualTypeOf<Backoff>();
    expectTypeOf(fixedBackoff(5)).toEqualTypeOf<Backoff>();
    // @ts-expect-error it answers milliseconds
    defineJob('send', { backoff: async () => 5 });
    // @ts-expect-error it answers milliseconds
    defineJob('send', { backoff: () => '5s' });
  });

  test('are checked', () => {
    // @ts-expect-error a kind is needed
    defineJob();
    // @ts-expect-error the kind is a text
    defineJob(5);
    // @ts-expect-error no Standard Schema
    defineJob('send', { payload: { to: 'string' } });
    // @ts-expect-error no Standard Schema
    defineJob('send', { output: String });
    // @ts-expect-error unknown option
    defineJob('send', { retries: 5 });
    // @ts-expect-error a number
    defineJob('send', { maxAttempts: '5' });
    // @ts-expect-error a number
    defineJob('send', { timeoutMs: '30s' });
    // @ts-expect-error a number
    defineJob('send', { priority: 'high' });
    // @ts-expect-error a text
    defineJob('send', { queue: 5 });
    // @ts-expect-error a boolean or 'outcome'
    defineJob('send', { keepResult: 1 });
    // @ts-expect-error a boolean or 'outcome'
    defineJob('send', { keepResult: 'payload' });
    // @ts-expect-error unknown option
    exponentialBackoff({ maxDelayMs: 5 });
  });
});
