import assert from 'node:assert/strict';
import { sql } from 'drizzle-orm';
import type { NeonHttpDatabase } from 'drizzle-orm/neon-http';
import { createQueue, defineJob, InvalidPayloadError } from 'drizzle-queue';
import { z } from 'zod';
import type { Behaviour } from './behaviour.ts';

const queue = createQueue();
const payload = z.object({ name: z.string() });
const queried = defineJob('queried', { payload, queue: 'batching' });
const batched = defineJob('batched', { payload, queue: 'batching' });

export const batching: readonly Behaviour[] = [
  {
    name: 'an enqueueQuery is sent when it is awaited, and says what became of it',
    async run({ db }) {
      const unsent = queue.enqueueQuery(db, queried, { name: 'never sent' });
      assert.match(unsent.toSQL().sql, /insert into/);
      const [plain] = await queue.enqueueQuery(db, queried, { name: 'Ada' });
      assert.equal(plain.duplicate, false);
      assert.equal(typeof plain.id, 'number');
      const [first] = await queue.enqueueQuery(db, queried, { name: 'Bo' }, { uniqueKey: 'bo' });
      const [again] = await queue.enqueueQuery(db, queried, { name: 'Bo' }, { uniqueKey: 'bo' });
      assert.deepEqual([first.duplicate, again], [false, { id: first.id, duplicate: true }]);
      const [scheduled] = await queue.enqueueQuery(db, queried, { name: 'Cy' }, { delayMs: 3_600_000 });
      assert.equal(scheduled.duplicate, false);
      assert.throws(() => queue.enqueueQuery(db, queried, { name: 'NUL \0' }), InvalidPayloadError);
      const { jobs } = await queue.list(db, { job: queried });
      assert.deepEqual(
        jobs.map((job) => [job.id, job.payload.name, job.state]),
        [
          [scheduled.id, 'Cy', 'scheduled'],
          [first.id, 'Bo', 'due'],
          [plain.id, 'Ada', 'due'],
        ],
      );
    },
  },
  {
    name: 'a batch enqueues with its other queries, or not at all',
    needs: ['batches'],
    async run(site) {
      // What has batches is this.
      const db = site.db as unknown as NeonHttpDatabase;
      await db.execute(sql`create table if not exists batch_effects (name text primary key)`);
      const insert = (name: string) => db.execute(sql`insert into batch_effects values (${name})`);
      const [, [enqueued]] = await db.batch([
        insert('Ada'),
        queue.enqueueQuery(db, batched, { name: 'Ada' }),
      ]);
      assert.equal(enqueued.duplicate, false);
      await assert.rejects(
        async () => await db.batch([queue.enqueueQuery(db, batched, { name: 'undone' }), insert('Ada')]),
      );
      const { jobs } = await queue.list(db, { job: batched });
      assert.deepEqual(
        jobs.map((job) => [job.id, job.payload.name]),
        [[enqueued.id, 'Ada']],
      );
    },
  },
];
