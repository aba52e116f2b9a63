import assert from 'node:assert/strict';
import { sql } from 'drizzle-orm';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, drain, fixedBackoff, handle, runNext } from 'drizzle-queue';
import { popRows } from 'drizzle-queue/skip-locked';
import type { Behaviour } from './behaviour.ts';
import { createEffects, effectsOf } from './effects.ts';

const queue = createQueue();
const effect = defineJob('effect', { queue: 'effect', maxAttempts: 2, backoff: fixedBackoff(0) });
const untouched = defineJob('untouched', { queue: 'untouched' });
const alone = defineJob('alone', { queue: 'alone', maxAttempts: 2, backoff: fixedBackoff(0) });
const numbers = pgTable('numbers', { n: integer('n').primaryKey() });

const deadlineMs = 60_000;

export const transactional: readonly Behaviour[] = [
  {
    name: 'complete(tx) commits the end of the job with the handler’s writes, or neither',
    needs: ['transactions'],
    async run(site) {
      const { db } = site;
      await createEffects(site);
      const { id } = await queue.enqueue(db, effect);
      const handler = handle(effect, async ({ job, complete }) => {
        await db.transaction(async (tx) => {
          await tx.execute(sql`insert into effects values (${job.id}::int8, ${job.attempt}::int4)`);
          await complete(tx, { attempt: job.attempt });
          if (job.attempt === 1) throw new Error('rolled back');
        });
      });
      const drained = await drain(db, { queue, handlers: [handler], deadlineMs });
      assert.deepEqual([drained.completed, drained.failed], [1, 1]);
      const record = await queue.find(db, id);
      assert.equal(record?.state, 'completed');
      assert.deepEqual(record.output, { attempt: 2 });
      assert.deepEqual(await effectsOf(site, id), [2]);
    },
  },
  {
    name: 'runNext runs one job in one transaction, and undoes what a failed attempt wrote',
    needs: ['transactions'],
    async run(site) {
      const { db } = site;
      await createEffects(site);
      const { id } = await queue.enqueue(db, alone);
      const handlers = [
        handle(alone, async ({ job, db: tx }) => {
          await tx.execute(sql`insert into effects values (${job.id}::int8, ${job.attempt}::int4)`);
          if (job.attempt === 1) throw new Error('undone');
        }),
      ];
      const first = await runNext(db, { queue, handlers });
      assert.deepEqual([first?.job.id, first?.outcome], [id, 'failed']);
      const second = await runNext(db, { queue, handlers });
      assert.deepEqual([second?.job.id, second?.outcome], [id, 'completed']);
      assert.equal(await runNext(db, { queue, handlers }), undefined);
      assert.deepEqual(await effectsOf(site, id), [2]);
    },
  },
  {
    name: 'without transactions runNext passes on what the driver says of that, and runs nothing',
    needs: ['no transactions'],
    async run({ db }) {
      const { id } = await queue.enqueue(db, untouched);
      let ran = false;
      const handler = handle(untouched, () => {
        ran = true;
      });
      await assert.rejects(runNext(db, { queue, handlers: [handler] }), /transactions/i);
      const record = await queue.find(db, id);
      assert.deepEqual([ran, record?.state, record?.attempt], [false, 'due', 0]);
    },
  },
  {
    name: 'a job that runs in a transaction is held by its lock alone',
    needs: ['transactions', 'connections'],
    async run({ db }) {
      const { id } = await queue.enqueue(db, alone);
      let meanwhile: unknown = 'not asked';
      const inner = [handle(alone, () => {})];
      const outer = [
        handle(alone, async () => {
          meanwhile = await runNext(db, { queue, handlers: inner });
        }),
      ];
      const ran = await runNext(db, { queue, handlers: outer });
      assert.deepEqual([ran?.job.id, ran?.outcome, meanwhile], [id, 'completed', undefined]);
    },
  },
  {
    name: 'popRows takes what nobody has locked, on any table',
    needs: ['transactions', 'connections'],
    async run({ db }) {
      await db.execute(sql`create table if not exists numbers (n int4 primary key)`);
      await db.execute(sql`insert into numbers select generate_series(1, 4) on conflict do nothing`);
      await db.transaction(async (tx) => {
        await tx.execute(sql`select n from numbers where n = 1 for update`);
        const popped = await popRows(db, numbers, { orderBy: numbers.n, limit: 2 });
        assert.deepEqual(popped.map(({ n }) => n).sort(), [2, 3]);
      });
      const rest = await popRows(db, numbers, { limit: 10 });
      assert.deepEqual(rest.map(({ n }) => n).sort(), [1, 4]);
    },
  },
];
