import assert from 'node:assert/strict';
import { sql } from 'drizzle-orm';
import { createQueue, defineJob, drain, fail, fixedBackoff, handleBatch } from 'drizzle-queue';
import type { Behaviour } from './behaviour.ts';
import { createEffects, effectsOf } from './effects.ts';

const queue = createQueue();
const batched = defineJob('effects', { queue: 'effects', maxAttempts: 2, backoff: fixedBackoff(0) });

const deadlineMs = 60_000;

export const batchHandling: readonly Behaviour[] = [
  {
    name: 'complete(tx) of a batch commits the ends of its jobs with the handler’s writes, or none',
    needs: ['transactions'],
    async run(site) {
      const { db } = site;
      await createEffects(site);
      const ids = (await queue.enqueueMany(db, batched, [{}, {}, {}])).map(({ id }) => id);
      const handler = handleBatch(batched, { maxSize: 3, maxWaitMs: 0 }, async (jobs, { complete }) => {
        await db.transaction(async (tx) => {
          for (const { job } of jobs) {
            await tx.execute(sql`insert into effects values (${job.id}::int8, ${job.attempt}::int4)`);
          }
          await complete(
            tx,
            jobs.map(({ job }) => ({ attempt: job.attempt })),
          );
          if (jobs.some(({ job }) => job.attempt === 1)) throw new Error('rolled back');
        });
      });
      const drained = await drain(db, { queue, handlers: [handler], deadlineMs });
      assert.deepEqual([drained.completed, drained.failed], [3, 3]);
      for (const id of ids) {
        const record = await queue.find(db, id);
        assert.equal(record?.state, 'completed');
        assert.deepEqual(record.output, { attempt: 2 });
        assert.deepEqual(await effectsOf(site, id), [2]);
      }
    },
  },
  {
    name: 'a batch handler says of each of its jobs how it ends',
    async run({ db }) {
      const kind = defineJob('mixed', { queue: 'mixed', maxAttempts: 1 });
      const ids = (await queue.enqueueMany(db, kind, [{}, {}, {}])).map(({ id }) => id);
      const handler = handleBatch(kind, { maxSize: 3, maxWaitMs: 0 }, (jobs) =>
        jobs.map(({ job }) => (job.id === ids[1] ? fail(new Error('this one')) : { id: job.id })),
      );
      const drained = await drain(db, { queue, handlers: [handler], deadlineMs });
      assert.deepEqual([drained.completed, drained.discarded], [2, 1]);
      const [first, second] = await Promise.all(ids.map((id) => queue.find(db, id)));
      assert.deepEqual([first?.state, second?.state], ['completed', 'discarded']);
      assert.equal(second?.errors[0]?.message, 'this one');
    },
  },
];
