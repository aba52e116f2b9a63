import { defineJob, type JobDefinition, type StandardSchema, unvalidated } from 'drizzle-queue';
import * as v from 'valibot';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';

/** As arktype and others type a schema; its vendor and its `validate` do not matter. */
declare const schemaOf: <TInput, TOutput = TInput>() => StandardSchema<TInput, TOutput>;

describe('a schema that refuses what comes back from JSON does not compile', () => {
  test('a Date', () => {
    // @ts-expect-error a Date
    defineJob('job', { payload: z.date() });
    // @ts-expect-error in an object
    defineJob('job', { payload: z.object({ at: z.date() }) });
    // @ts-expect-error optional
    defineJob('job', { payload: z.object({ at: z.date().optional() }) });
    // @ts-expect-error nullable, in an array
    defineJob('job', { payload: z.array(z.object({ at: z.date().nullable() })) });
    // @ts-expect-error in a tuple
    defineJob('job', { payload: z.tuple([z.string(), z.date()]).rest(z.string()) });
    // @ts-expect-error in a record
    defineJob('job', { payload: z.record(z.string(), z.date()) });
    // @ts-expect-error with a default
    defineJob('job', { payload: z.object({ at: z.date().default(new Date(0)) }) });
    // @ts-expect-error before a transform
    defineJob('job', { payload: z.date().transform((date) => date.toISOString()) });
    // @ts-expect-error lazily
    defineJob('job', { payload: z.lazy(() => z.object({ at: z.date() })) });
    const either = z.union([
      z.object({ type: z.literal('a'), at: z.date() }),
      z.object({ type: z.literal('b') }),
    ]);
    // @ts-expect-error in a union
    defineJob('job', { payload: either });
    // @ts-expect-error of valibot
    defineJob('job', { payload: v.object({ at: v.optional(v.date()) }) });
    // @ts-expect-error of any other library
    defineJob('job', { payload: schemaOf<{ readonly at?: Date }>() });
  });

  test('in a type that contains itself', () => {
    interface Tree {
      readonly at: Date;
      readonly children: readonly Tree[];
    }
    // @ts-expect-error a Date
    defineJob('job', { payload: schemaOf<Tree>() });
  });

  test('what is no JSON at all', () => {
    // @ts-expect-error a bigint
    defineJob('job', { payload: z.object({ n: z.bigint() }) });
    // @ts-expect-error an optional one
    defineJob('job', { payload: z.object({ n: z.bigint().optional() }) });
    // @ts-expect-error or a text
    defineJob('job', { payload: z.object({ n: z.union([z.bigint(), z.string()]) }) });
    // @ts-expect-error of valibot
    defineJob('job', { payload: v.array(v.bigint()) });
    // @ts-expect-error a Map
    defineJob('job', { payload: z.map(z.string(), z.string()) });
    // @ts-expect-error a Set
    defineJob('job', { payload: z.object({ tags: z.set(z.string()) }) });
    // @ts-expect-error an instance
    defineJob('job', { payload: z.object({ url: z.instanceof(URL) }) });
    // @ts-expect-error binary data
    defineJob('job', { payload: z.instanceof(Uint8Array) });
    // @ts-expect-error a function
    defineJob('job', { payload: schemaOf<{ run(): void }>() });
  });

  test('as an output, too', () => {
    // @ts-expect-error a Date
    defineJob('job', { output: z.object({ at: z.date() }) });
    // @ts-expect-error a bigint
    defineJob('job', { payload: z.string(), output: v.bigint() });
  });
});

test('the message says why, and what to write', () => {
  type Options<TPayload extends StandardSchema, TOutput extends StandardSchema> = NonNullable<
    Parameters<typeof defineJob<'job', TPayload, TOutput>>[1]
  >;
  expectTypeOf<
    NonNullable<Options<z.ZodDate, z.ZodString>['payload']>
  >().toExtend<`The payload is stored as JSON, and its schema refuses what comes back: ${string}use z.coerce.date()${string}`>();
  expectTypeOf<
    NonNullable<Options<z.ZodString, z.ZodBigInt>['output']>
  >().toExtend<`The output is stored as JSON${string}JSON has no bigint${string}`>();
});

describe('what comes back as it went in compiles', () => {
  test('what a schema makes of JSON', () => {
    defineJob('job', {
      payload: z.object({
        date: z.coerce.date(),
        large: z.coerce.bigint(),
        count: z.coerce.number<string>(),
        at: z.iso.datetime().transform((text) => new Date(text)),
        either: z.union([z.date(), z.string()]),
        at2: z.preprocess((value) => value, z.date()),
      }),
      output: z.iso.datetime().pipe(z.coerce.date()),
    });
    defineJob('job', {
      payload: v.pipe(
        v.string(),
        v.transform((text) => BigInt(text)),
      ),
    });
    defineJob('job', { payload: schemaOf<Date | string, Date>() });
  });

  test('a type without a check', () => {
    const job = defineJob('job', { payload: unvalidated<{ at: Date }>(), output: unvalidated<Date>() });
    expectTypeOf(job).toExtend<JobDefinition>();
  });

  test('what is not known', () => {
    defineJob('job', { payload: z.unknown(), output: z.any() });
    defineJob('job', { payload: z.record(z.string(), z.unknown()) });
    defineJob('job', { payload: z.object({ a: z.any(), b: z.unknown().optional() }).catchall(z.any()) });
    defineJob('job', { payload: schemaOf<object>() });
    defineJob('job', { payload: {} as z.ZodType });
    defineJob('job', { payload: {} as StandardSchema | undefined });
  });

  test('JSON itself, and types that contain themselves', () => {
    type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
    type ReadonlyJson =
      | string
      | number
      | boolean
      | null
      | readonly ReadonlyJson[]
      | { readonly [key: string]: ReadonlyJson | undefined };
    interface Tree {
      name: string;
      parent?: Tree | null | undefined;
      readonly children?: readonly Tree[];
      byName: Record<string, Tree>;
      pair: [Tree, string] | [];
    }
    const category = z.object({
      name: z.string(),
      get sub() {
        return z.array(category).optional();
      },
    });
    defineJob('job', { payload: z.json() });
    defineJob('job', { payload: z.object({ settings: z.json().optional() }), output: schemaOf<Json>() });
    defineJob('job', { payload: schemaOf<ReadonlyJson>() });
    defineJob('job', { payload: schemaOf<Tree>(), output: category });
    defineJob('job', { payload: schemaOf<{ tree: Tree; rest: unknown }>() });
  });

  test('brands, literals, enums, tuples and optional properties', () => {
    type Id = string & { readonly __brand: 'id' };
    enum Size {
      Small,
      Large,
    }
    interface Order {
      id: Id;
      lines: readonly [string, ...string[]];
      note?: string | undefined;
      meta?: Record<string, unknown>;
    }
    defineJob('job', { payload: z.string().brand('Id') });
    defineJob('job', { payload: schemaOf<Order>(), output: schemaOf<{ order: Order } & { more?: 1 }>() });
    defineJob('job', {
      payload: z.object({
        size: z.enum(Size),
        unit: z.enum(['px', 'em']).default('px'),
        literal: z.literal([1, 'a', null, true]),
        text: z.templateLiteral(['a-', z.number()]),
        tuple: z.tuple([z.string(), z.number()]).rest(z.boolean()),
        none: z.never().optional(),
        brand: z.object({ id: z.number() }).brand('Order').optional(),
      }),
    });
    defineJob('job', { payload: v.looseObject({ a: v.nullish(v.string()) }) });
  });

  test('a schema that is a type parameter', () => {
    const send = <TSchema extends StandardSchema>(kind: string, payload: TSchema) =>
      defineJob(kind, { payload, queue: 'mail' });
    const sendZod = <TSchema extends z.ZodType>(output: TSchema) =>
      defineJob('send', { payload: z.string(), output });
    expectTypeOf(send('send', z.string()).payload).toEqualTypeOf<z.ZodString>();
    expectTypeOf(sendZod(z.string()).output).toEqualTypeOf<z.ZodString>();
  });
});
