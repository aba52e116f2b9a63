import { createQueue, defineJob, type Executor, handle, unvalidated } from 'drizzle-queue';
import type { QueryResult } from 'pg';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';

type JsonOfZod = z.infer<ReturnType<typeof z.json>>;

declare const db: Executor;
const queue = createQueue();

describe('what comes back from JSON', () => {
  test('an unvalidated payload: a Date goes in, a text comes out', () => {
    const job = defineJob('job', { payload: unvalidated<{ at: Date; n?: number; tags: ('a' | 'b')[] }>() });
    expectTypeOf(queue.enqueue<typeof job>)
      .parameter(2)
      .toEqualTypeOf<{ at: Date; n?: number; tags: ('a' | 'b')[] }>();
    handle(job, ({ payload }) => {
      expectTypeOf(payload).toEqualTypeOf<{ at: string; n?: number; tags: ('a' | 'b')[] }>();
    });
  });

  test('a validated payload is what its schema makes of it for handlers, and what is stored for find', async () => {
    const job = defineJob('job', {
      payload: z.object({ at: z.iso.datetime().transform((text) => new Date(text)) }),
      output: z.object({ id: z.string() }),
    });
    handle(job, ({ payload }) => {
      expectTypeOf(payload).toEqualTypeOf<{ at: Date }>();
      return { id: 'x' };
    });
    const record = await queue.find(db, job, 1);
    if (record?.state !== 'completed') return;
    expectTypeOf(record.payload).toEqualTypeOf<{ at: string }>();
    expectTypeOf(record.output).toEqualTypeOf<{ id: string }>();
  });

  test('JSON of any depth, whose type holds itself, stays what it was', async () => {
    const job = defineJob('job', { payload: z.object({ data: z.record(z.string(), z.json()) }) });
    const { jobs } = await queue.list(db, { job });
    // Compares the types of the records; it was "excessively deep and possibly infinite".
    const failed = jobs.filter(({ errors }) => errors.length > 0);
    expectTypeOf<(typeof failed)[number]['payload']>().toEqualTypeOf<{ data: Record<string, JsonOfZod> }>();
  });

  test('no payload is null', async () => {
    const record = await queue.find(db, defineJob('job'), 1);
    expectTypeOf<NonNullable<typeof record>['payload']>().toEqualTypeOf<null>();
  });

  test('arrays and tuples stay what they are, and JSON is JSON', () => {
    type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
    interface Tree {
      at: Date;
      children: readonly Tree[];
    }
    const job = defineJob('job', {
      payload: unvalidated<{
        pair: readonly [Date, number];
        some: [Date, ...string[]];
        ids: readonly Date[];
        json: Json;
        tree: Tree;
        method(): void;
        large: bigint;
      }>(),
    });
    handle(job, ({ payload }) => {
      expectTypeOf(payload.pair).toEqualTypeOf<readonly [string, number]>();
      expectTypeOf(payload.some).toEqualTypeOf<[string, ...string[]]>();
      expectTypeOf(payload.ids).toEqualTypeOf<readonly string[]>();
      expectTypeOf(payload.json).toExtend<Json>();
      expectTypeOf(payload.tree.children[0]?.children[0]?.at).toEqualTypeOf<string | undefined>();
      // Nothing of them is stored.
      expectTypeOf(payload.method).toEqualTypeOf<unknown>();
      expectTypeOf(payload.large).toEqualTypeOf<unknown>();
    });
  });

  test('a result of node-postgres is its rows', () => {
    const job = defineJob('job', {
      payload: unvalidated<{ found: QueryResult<{ id: number; at: Date }>; inserted: QueryResult<never> }>(),
    });
    handle(job, ({ payload }) => {
      expectTypeOf(payload.found).toEqualTypeOf<{ id: number; at: string }[]>();
      expectTypeOf(payload.inserted).toEqualTypeOf<never[]>();
    });
  });

  test('what is not known stays unknown', async () => {
    const { jobs } = await queue.list(db);
    expectTypeOf<(typeof jobs)[number]['payload']>().toEqualTypeOf<unknown>();
    const job = defineJob('job', {
      payload: unvalidated<{ rest: unknown; kept: readonly [1, 'x', null] }>(),
    });
    handle(job, ({ payload }) => {
      expectTypeOf(payload).toEqualTypeOf<{ rest: unknown; kept: readonly [1, 'x', null] }>();
    });
  });
});
