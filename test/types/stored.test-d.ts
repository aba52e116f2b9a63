import { createQueue, defineJob, type Executor, handle, unvalidated } from 'drizzle-queue';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';

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

  test('no payload is null', async () => {
    const record = await queue.find(db, defineJob('job'), 1);
    expectTypeOf<NonNullable<typeof record>['payload']>().toEqualTypeOf<null>();
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
