import assert from 'node:assert/strict';
import { createQueue, defineJob, drain, handle, unvalidated } from 'drizzle-queue';
import type { Behaviour } from './behaviour.ts';

const queue = createQueue();
const aged = defineJob('aged', { payload: unvalidated<string>(), queue: 'aging' });
const MINUTE_MS = 60_000;

export const aging: readonly Behaviour[] = [
  {
    name: 'a job of a low priority comes before newer ones of a high priority once it has waited long enough',
    async run({ db }) {
      const ago = (minutes: number) => new Date(Date.now() - minutes * MINUTE_MS);
      await queue.enqueueMany(db, aged, [
        { payload: 'young', priority: 2 },
        ...Array.from({ length: 5 }, () => ({ payload: 'high', priority: 1, runAt: ago(1) })),
        { payload: 'old', priority: 9, runAt: ago(120) },
      ]);
      const order: string[] = [];
      await drain(db, {
        queue,
        handlers: [handle(aged, ({ payload }) => void order.push(payload))],
        queues: { aging: { concurrency: 1, aging: { afterMs: 10 * MINUTE_MS } } },
        deadlineMs: 30_000,
      });
      // The first claim knows no time of the database yet, and goes by the priorities alone.
      assert.ok(order.indexOf('old') <= 1, `the order was ${order}`);
      assert.equal(order.at(-1), 'young');
      assert.equal(order.length, 7);
    },
  },
];
