import assert from 'node:assert/strict';
import { createQueue, defineJob, type EnqueueResult } from 'drizzle-queue';
import { z } from 'zod';
import type { Behaviour } from './behaviour.ts';

const queue = createQueue();
const payload = z.object({ name: z.string() });
const keyed = defineJob('keyed', { payload, queue: 'unique-keys' });
const raced = defineJob('raced', { payload, queue: 'unique-keys' });

export const uniqueKeys: readonly Behaviour[] = [
  {
    name: 'refuses duplicates, alone and in bulk, in input order',
    async run({ db }) {
      const first = await queue.enqueue(db, keyed, { name: 'Bo' }, { uniqueKey: 'bo' });
      assert.equal(first.duplicate, false);
      assert.deepEqual(await queue.enqueue(db, keyed, { name: 'Bo' }, { uniqueKey: 'bo' }), {
        id: first.id,
        duplicate: true,
        outcome: 'duplicate',
      });
      const many = await queue.enqueueMany(db, keyed, [
        { payload: { name: 'Cy' }, uniqueKey: 'cy' },
        { payload: { name: 'Bo' }, uniqueKey: 'bo' },
        { payload: { name: 'Di' } },
        { payload: { name: 'Cy' }, uniqueKey: 'cy' },
      ]);
      assert.deepEqual(
        many.map(({ duplicate }) => duplicate),
        [false, true, false, true],
      );
      assert.equal(many[1]?.id, first.id);
      assert.equal(many[3]?.id, many[0]?.id);
      const names = await Promise.all(many.map(({ id }) => queue.find(db, keyed, id)));
      assert.deepEqual(
        names.map((record) => record?.payload.name),
        ['Cy', 'Bo', 'Di', 'Cy'],
      );
    },
  },
  {
    name: 'of 20 that enqueue one key at once, one wins',
    needs: ['connections'],
    async run({ db }) {
      const all = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          queue.enqueue(db, raced, { name: `n${n}` }, { uniqueKey: 'crowd' }),
        ),
      );
      assert.equal(all.filter(({ duplicate }) => !duplicate).length, 1);
      assert.equal(new Set(all.map(({ id }) => id)).size, 1);
    },
  },
  {
    name: 'a key of an open transaction is waited for, and its commit decides',
    needs: ['transactions', 'connections'],
    async run({ db }) {
      for (const commits of [true, false]) {
        const options = { uniqueKey: `commits ${commits}` };
        let second: Promise<EnqueueResult> | undefined;
        let first: EnqueueResult | undefined;
        await db
          .transaction(async (tx) => {
            first = await queue.enqueue(tx, raced, { name: 'first' }, options);
            second = queue.enqueue(db, raced, { name: 'second' }, options);
            // Either it waits now, or it comes after the end: the answer is the same.
            await queue.find(tx, first.id);
            if (!commits) throw new Error('undone');
          })
          .catch((error: Error) => assert.equal(error.message, 'undone'));
        const answer = await second;
        assert.equal(answer?.duplicate, commits);
        assert.equal(answer?.id === first?.id, commits);
      }
    },
  },
];
