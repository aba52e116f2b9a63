import {
  createQueue,
  defineJob,
  type EnqueueOptions,
  type EnqueueResult,
  type LimitedEnqueueResult,
  unvalidated,
} from 'drizzle-queue';
import { queueKeys, queueNotes } from 'drizzle-queue/schema/control';
import { describe, expectTypeOf, test } from 'vitest';
import { postgresJs as db } from './databases.ts';

const queue = createQueue({ keys: queueKeys });
const send = defineJob('send', { payload: unvalidated<{ to: string }>() });
const sync = defineJob('sync');
const payload = { to: 'ada' };
const debounce = { key: 'k', delayMs: 5 };
const throttle = { key: 'k', perMs: 5 };
const replace = { key: 'k' };

describe('what an enqueue answers', () => {
  test('has an id, whatever it replaces or leaves standing', () => {
    const known: EnqueueOptions[] = [
      { debounce },
      { replace, delayMs: 5 },
      { replace: { key: 'k', runAt: 'keep' } },
      { uniqueKey: 'k', unique: 'waiting' },
      { uniqueKey: 'k', unique: 'live', runAt: new Date() },
      { throttle: { ...throttle, trailing: true } },
    ];
    for (const options of known) {
      expectTypeOf(queue.enqueue(db, send, payload, options)).resolves.toEqualTypeOf<EnqueueResult>();
    }
    expectTypeOf(queue.enqueue(db, sync, undefined, { debounce })).resolves.toEqualTypeOf<EnqueueResult>();
    expectTypeOf<EnqueueResult['id']>().toEqualTypeOf<number>();
  });

  test('may have none where a time refuses it, and the outcome tells', async () => {
    const answer = await queue.enqueue(db, send, payload, { throttle });
    expectTypeOf(answer).toEqualTypeOf<LimitedEnqueueResult>();
    expectTypeOf(answer.id).toEqualTypeOf<number | undefined>();
    if (answer.outcome === 'enqueued') expectTypeOf(answer.id).toEqualTypeOf<number>();
    if (answer.outcome === 'throttled') expectTypeOf(answer.id).toEqualTypeOf<undefined>();
    const period = queue.enqueue(db, send, payload, { uniqueKey: 'k', unique: { forMs: 5 } });
    expectTypeOf(period).resolves.toEqualTypeOf<LimitedEnqueueResult>();
    expectTypeOf(
      queue.enqueue(db, sync, undefined, { throttle }),
    ).resolves.toEqualTypeOf<LimitedEnqueueResult>();
  });

  test('in bulk too', () => {
    const known = queue.enqueueMany(db, send, [{ payload, debounce }]);
    expectTypeOf(known).resolves.toEqualTypeOf<EnqueueResult[]>();
    const limited = queue.enqueueMany(db, send, [{ payload, throttle }]);
    expectTypeOf(limited).resolves.toEqualTypeOf<LimitedEnqueueResult[]>();
  });
});

describe('options that make no sense', () => {
  test('together', () => {
    // @ts-expect-error one or the other
    queue.enqueue(db, send, payload, { debounce, throttle });
    // @ts-expect-error one or the other
    queue.enqueue(db, send, payload, { debounce, replace });
    // @ts-expect-error one or the other
    queue.enqueue(db, send, payload, { replace, uniqueKey: 'k' });
    // @ts-expect-error debounce says when
    queue.enqueue(db, send, payload, { debounce, delayMs: 5 });
    // @ts-expect-error debounce says when
    queue.enqueue(db, send, payload, { debounce, runAt: new Date() });
    // @ts-expect-error no key
    queue.enqueue(db, send, payload, { unique: { forMs: 5 } });
  });

  test('by themselves', () => {
    // @ts-expect-error no delay
    queue.enqueue(db, send, payload, { debounce: { key: 'k' } });
    // @ts-expect-error no such setting
    queue.enqueue(db, send, payload, { debounce: { ...debounce, maxWait: 5 } });
    // @ts-expect-error no window
    queue.enqueue(db, send, payload, { throttle: { key: 'k' } });
    // @ts-expect-error no time
    queue.enqueue(db, send, payload, { replace: { key: 'k', runAt: new Date() } });
    // @ts-expect-error no such scope
    queue.enqueue(db, send, payload, { uniqueKey: 'k', unique: 'ever' });
    // @ts-expect-error another table
    createQueue({ keys: queueNotes });
  });

  test('in a batch, and for the rows of a select', () => {
    queue.enqueueQuery(db, send, payload, { uniqueKey: 'k', unique: 'live' });
    // @ts-expect-error not in a batch
    queue.enqueueQuery(db, send, payload, { debounce });
    // @ts-expect-error not in a batch
    queue.enqueueQuery(db, send, payload, { throttle });
    // @ts-expect-error not in a batch
    queue.enqueueQuery(db, send, payload, { uniqueKey: 'k', unique: 'waiting' });
  });
});
