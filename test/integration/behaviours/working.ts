import assert from 'node:assert/strict';
import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  NonRetryableError,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import { z } from 'zod';
import { until } from '../../support/until.ts';
import { type Behaviour, rowsOf } from './behaviour.ts';

const queue = createQueue();
const greet = defineJob('greet', {
  payload: z.object({ name: z.string(), at: z.coerce.date().optional() }),
  output: z.object({ text: z.string() }),
  queue: 'working',
});
const flaky = defineJob('flaky', { queue: 'flaky', maxAttempts: 3, backoff: fixedBackoff(0) });
const forgotten = defineJob('forgotten', { queue: 'forgotten', keepResult: false });
const counted = defineJob('counted', { queue: 'counted' });
const brief = defineJob('brief', {
  payload: unvalidated<number | null>(),
  queue: 'brief',
  keepResult: 'outcome',
});
const claimed = defineJob('claimed', { payload: unvalidated<number>(), queue: 'claim-race' });
const worked = defineJob('worked', { payload: unvalidated<number>(), queue: 'worked' });

const deadlineMs = 60_000;

export const working: readonly Behaviour[] = [
  {
    name: 'drains: every job completed, with its output',
    async run({ db }) {
      const at = new Date('2030-01-02T03:04:05.678Z');
      const { id } = await queue.enqueue(db, greet, { name: 'Ada', at });
      await queue.enqueue(db, greet, { name: 'Bo' });
      const dates: unknown[] = [];
      const greeting = handle(greet, async ({ payload }) => {
        if (payload.at !== undefined) dates.push(payload.at);
        return { text: `Hello, ${payload.name}` };
      });
      const drained = await drain(db, { queue, handlers: [greeting], deadlineMs });
      assert.deepEqual([drained.completed, drained.failed, drained.empty], [2, 0, true]);
      const found = await queue.find(db, greet, id);
      assert.equal(found?.state, 'completed');
      assert.deepEqual(found.output, { text: 'Hello, Ada' });
      assert.ok(found.finishedAt instanceof Date);
      assert.deepEqual(dates, [at]);
    },
  },
  {
    name: 'counts, measures and checks, with a bound of time where there are transactions',
    async run({ db }) {
      await queue.enqueue(db, counted);
      const { queues } = await queue.stats(db);
      assert.equal(queues.find(({ queue }) => queue === 'counted')?.due, 1);
      assert.ok((await queue.vitals(db)).vitals.length > 0);
      assert.ok(Array.isArray(await queue.check(db)));
    },
  },
  {
    name: 'keeps no result where none is wanted',
    async run({ db }) {
      const { id } = await queue.enqueue(db, forgotten);
      const handlers = [handle(forgotten, () => {})];
      assert.equal((await drain(db, { queue, handlers, deadlineMs })).completed, 1);
      assert.equal(await queue.find(db, id), undefined);
    },
  },
  {
    name: 'keeps no payload where only the outcome is wanted, and that of what failed',
    async run({ db }) {
      const done = await queue.enqueue(db, brief, 7);
      const failed = await queue.enqueue(db, brief, null);
      const handlers = [
        handle(brief, ({ payload }) => {
          if (payload === null) throw new NonRetryableError('no');
          return payload;
        }),
      ];
      assert.equal((await drain(db, { queue, handlers, deadlineMs })).completed, 1);
      const found = await queue.find(db, brief, done.id);
      assert.equal(found?.state, 'completed');
      assert.deepEqual([found.payload, found.output], [undefined, 7]);
      assert.equal((await queue.find(db, brief, failed.id))?.payload, null);
    },
  },
  {
    name: 'fails, retries, snoozes, discards, and puts back',
    async run({ db }) {
      const { id } = await queue.enqueue(db, flaky);
      let snoozed = false;
      let ending: 'throw' | 'return' = 'throw';
      const handler = handle(flaky, ({ job }) => {
        if (ending === 'return') return;
        if (job.attempt === 1) throw new Error('not now');
        if (!snoozed) {
          snoozed = true;
          return snooze(0);
        }
        throw new NonRetryableError('never', { cause: new Error('because') });
      });
      const run = () => drain(db, { queue, handlers: [handler], deadlineMs });
      const drained = await run();
      assert.deepEqual([drained.failed, drained.snoozed, drained.discarded], [2, 1, 1]);
      const discarded = await queue.find(db, id);
      assert.equal(discarded?.state, 'discarded');
      assert.equal(discarded.attempt, 2);
      assert.deepEqual(
        discarded.errors.map(({ message }) => message),
        ['not now', 'never [cause] Error: because'],
      );
      ending = 'return';
      assert.deepEqual(await queue.redrive(db, id), { redriven: 1, duplicates: 0 });
      await run();
      assert.equal((await queue.find(db, id))?.state, 'completed');
    },
  },
  {
    name: 'of four that claim at once, each job is run by one',
    async run({ db }) {
      const count = 200;
      await queue.enqueueMany(
        db,
        claimed,
        Array.from({ length: count }, (_, n) => ({ payload: n })),
      );
      const runs: number[] = [];
      const handler = handle(claimed, async ({ payload }) => {
        runs.push(payload);
        // Long enough for another to claim the same job, if it could.
        await new Promise(setImmediate);
      });
      const drained = await Promise.all(
        Array.from({ length: 4 }, () => drain(db, { queue, handlers: [handler], deadlineMs })),
      );
      assert.equal(
        drained.reduce((sum, { completed }) => sum + completed, 0),
        count,
      );
      assert.equal(runs.length, count);
      assert.equal(new Set(runs).size, count);
    },
  },
  {
    name: 'a worker starts, works and stops, and leaves nothing held',
    async run({ db }) {
      const done: number[] = [];
      const problems: unknown[] = [];
      const worker = createWorker(db, {
        log: false,
        queue,
        handlers: [
          handle(worked, async ({ payload }) => {
            done.push(payload);
          }),
        ],
        name: 'a worker that works',
      }).on('error', (error) => problems.push(error));
      await worker.start();
      await queue.enqueueMany(
        db,
        worked,
        Array.from({ length: 50 }, (_, n) => ({ payload: n })),
      );
      await until(() => done.length >= 50, { timeoutMs: 30_000 });
      await worker.stop();
      assert.deepEqual(
        done.toSorted((a, b) => a - b),
        Array.from({ length: 50 }, (_, n) => n),
      );
      assert.deepEqual(problems, []);
      const left = await queue.list(db, { job: worked, state: 'running' });
      assert.deepEqual(left.jobs, []);
      const workers = await db.execute(sql`
        select id from queue_workers where name = 'a worker that works'`);
      assert.deepEqual(rowsOf(workers), []);
    },
  },
];
