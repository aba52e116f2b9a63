import assert from 'node:assert/strict';
import { createQueue, defineJob, drain, handle, type LimitedEnqueueResult, unvalidated } from 'drizzle-queue';
import { queueKeys } from 'drizzle-queue/schema/control';
import type { Behaviour } from './behaviour.ts';

const queue = createQueue({ keys: queueKeys });
const ruled = defineJob('ruled', { payload: unvalidated<number>(), queue: 'key-rules' });
const aside = defineJob('aside', { payload: unvalidated<number>(), queue: 'key-rules' });
const HOUR_MS = 3_600_000;

export const keyRules: readonly Behaviour[] = [
  {
    name: 'debounces, throttles and replaces, alone and in bulk, and says what became of each',
    async run({ db }) {
      const debounce = { key: 'debounced', delayMs: 200, maxWaitMs: 400 };
      const replace = { key: 'replaced' };
      const throttle = { key: 'throttled', perMs: HOUR_MS };
      const first = await queue.enqueue(db, ruled, 1, { debounce });
      const second = await queue.enqueue(db, ruled, 2, { debounce });
      assert.deepEqual([first.outcome, second], ['enqueued', { ...first, outcome: 'replaced' }]);
      const waits = await queue.enqueue(db, ruled, 3, { replace, delayMs: HOUR_MS });
      const outcomes = (answers: readonly LimitedEnqueueResult[]) => answers.map(({ outcome }) => outcome);
      const replaced = await queue.enqueueMany(db, ruled, [
        { payload: 4, replace },
        { payload: 5, replace: { key: 'another' } },
      ]);
      assert.deepEqual([outcomes(replaced), replaced[0]?.id], [['replaced', 'enqueued'], waits.id]);
      const throttled = await queue.enqueueMany(db, ruled, [
        { payload: 6, throttle },
        { payload: 7, throttle: { ...throttle, key: 'another' } },
        { payload: 8, throttle },
      ]);
      assert.deepEqual(outcomes(throttled), ['enqueued', 'enqueued', 'throttled']);
      const done: number[] = [];
      const handlers = [handle(ruled, ({ payload }) => void done.push(payload))];
      while (done.length < 5) await drain(db, { queue, handlers, deadlineMs: 30_000 });
      assert.deepEqual(done.sort(), [2, 4, 5, 6, 7]);
      assert.equal((await queue.enqueue(db, ruled, 9, { throttle })).outcome, 'throttled');
    },
  },
  {
    name: 'a unique key holds while its job waits, or for a time, whichever an enqueue says',
    async run({ db }) {
      const waiting = { uniqueKey: 'waits', unique: 'waiting' } as const;
      const forMs = { uniqueKey: 'lasts', unique: { forMs: HOUR_MS } } as const;
      const enqueue = async (n: number, unique: 'waiting' | 'for a time') =>
        unique === 'waiting'
          ? (await queue.enqueue(db, aside, n, waiting)).outcome
          : (await queue.enqueue(db, aside, n, forMs)).outcome;
      const outcomes = [
        await enqueue(1, 'waiting'),
        await enqueue(2, 'waiting'),
        await enqueue(3, 'for a time'),
        await enqueue(4, 'for a time'),
      ];
      assert.deepEqual(outcomes, ['enqueued', 'duplicate', 'enqueued', 'duplicate']);
      const done: number[] = [];
      const handler = handle(aside, async ({ payload }) => {
        done.push(payload);
        if (payload === 1) outcomes.push(await enqueue(5, 'waiting'));
      });
      await drain(db, { queue, handlers: [handler], deadlineMs: 30_000 });
      assert.equal(outcomes.at(-1), 'enqueued', 'the key of one that waits is free once it runs');
      assert.deepEqual(done.sort(), [1, 3, 5]);
      assert.equal(await enqueue(6, 'for a time'), 'duplicate');
    },
  },
];
