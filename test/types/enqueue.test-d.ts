import { createQueue, defineJob, type EnqueueResult, type JobDefinition, unvalidated } from 'drizzle-queue';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { postgresJs as db } from './databases.ts';

const queue = createQueue();
const send = defineJob('send', {
  payload: z.object({ to: z.string(), at: z.string().transform(Date.parse) }),
});
const sync = defineJob('sync');
const report = defineJob('report', { payload: z.object({ year: z.number() }).optional() });
const payload = { to: 'ada', at: '2030-01-01' };

describe('enqueue', () => {
  test('takes the payload as the schema takes it', () => {
    queue.enqueue(db, send, payload);
    // @ts-expect-error no payload
    queue.enqueue(db, send);
    // @ts-expect-error the handler's payload, not the stored one
    queue.enqueue(db, send, { to: 'ada', at: 5 });
    // @ts-expect-error a property is missing
    queue.enqueue(db, send, { to: 'ada' });
    // @ts-expect-error unknown property
    queue.enqueue(db, send, { ...payload, too: 'ada' });
    // @ts-expect-error null is not left out
    queue.enqueue(db, send, null);
  });

  test('takes none where the definition has none', () => {
    queue.enqueue(db, sync);
    queue.enqueue(db, sync, undefined, { delayMs: 5 });
    // @ts-expect-error options in the place of the payload
    queue.enqueue(db, sync, { delayMs: 5 });
    // @ts-expect-error a payload
    queue.enqueue(db, sync, 'all');
  });

  test('may leave out an optional one', () => {
    queue.enqueue(db, report);
    queue.enqueue(db, report, undefined, { priority: 0 });
    queue.enqueue(db, report, { year: 2030 });
    // @ts-expect-error wrong payload
    queue.enqueue(db, report, { year: '2030' });
  });

  test('takes anything where that is what the definition says', () => {
    const any = defineJob('any', { payload: unvalidated<unknown>() });
    queue.enqueue(db, any, { a: 1 });
    queue.enqueue(db, any);
  });

  test('takes the payload of one of several kinds, in a function over all definitions', () => {
    const later = async <TJob extends JobDefinition>(job: TJob) =>
      await queue.list(db, { job }).then(({ jobs }) => jobs[0]?.payload);
    expectTypeOf(later(send)).resolves.toEqualTypeOf<{ to: string; at: string } | undefined>();
    queue.enqueue(db, send as JobDefinition, payload);
  });

  test('takes options of their types', () => {
    queue.enqueue(db, send, payload, {
      delayMs: 5,
      priority: 1,
      maxAttempts: 2,
      queue: 'mail',
      uniqueKey: 'k',
      metadata: { trace: 'a', nested: [1] },
    });
    queue.enqueue(db, send, payload, { runAt: new Date() });
    queue.enqueue(db, send, payload, { delayMs: undefined, uniqueKey: undefined, metadata: undefined });
    // @ts-expect-error unknown option
    queue.enqueue(db, send, payload, { delay: 5 });
    // @ts-expect-error a number
    queue.enqueue(db, send, payload, { delayMs: '5s' });
    // @ts-expect-error a Date
    queue.enqueue(db, send, payload, { runAt: '2030-01-01' });
    // @ts-expect-error a number
    queue.enqueue(db, send, payload, { priority: 'high' });
    // @ts-expect-error a text
    queue.enqueue(db, send, payload, { uniqueKey: 5 });
    // @ts-expect-error an object
    queue.enqueue(db, send, payload, { metadata: 'trace' });
    // @ts-expect-error the kind is the definition's
    queue.enqueue(db, send, payload, { kind: 'other' });
  });

  test('takes a definition, not its kind', () => {
    // @ts-expect-error a text
    queue.enqueue(db, 'send', payload);
  });

  test('says whether the job is new', () => {
    expectTypeOf(queue.enqueue(db, sync)).resolves.toEqualTypeOf<EnqueueResult>();
    expectTypeOf<EnqueueResult>().toEqualTypeOf<{
      readonly id: number;
      readonly duplicate: boolean;
      readonly outcome: 'enqueued' | 'duplicate' | 'replaced';
    }>();
  });
});

describe('enqueueMany', () => {
  test('takes entries of payload and options', () => {
    const entries = [{ payload }, { payload, delayMs: 5, uniqueKey: 'k', metadata: { a: 1 } }] as const;
    expectTypeOf(queue.enqueueMany(db, send, entries)).resolves.toEqualTypeOf<EnqueueResult[]>();
    queue.enqueueMany(db, send, []);
    // @ts-expect-error no payload
    queue.enqueueMany(db, send, [{}]);
    // @ts-expect-error the payload is not the entry
    queue.enqueueMany(db, send, [payload]);
    // @ts-expect-error wrong payload
    queue.enqueueMany(db, send, [{ payload: { to: 5, at: '' } }]);
    // @ts-expect-error unknown option
    queue.enqueueMany(db, send, [{ payload, delay: 5 }]);
    // @ts-expect-error a list
    queue.enqueueMany(db, send, { payload });
  });

  test('takes entries without payload where the definition has none', () => {
    queue.enqueueMany(db, sync, [{}, { priority: 1 }]);
    queue.enqueueMany(db, report, [{}, { payload: { year: 2030 } }]);
    // @ts-expect-error a payload
    queue.enqueueMany(db, sync, [{ payload: 'all' }]);
  });
});
