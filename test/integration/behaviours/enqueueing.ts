import assert from 'node:assert/strict';
import { sql } from 'drizzle-orm';
import type { PgliteDatabase } from 'drizzle-orm/pglite';
import { createQueue, defineJob, InvalidPayloadError, unvalidated } from 'drizzle-queue';
import { z } from 'zod';
import { type Behaviour, rowsOf } from './behaviour.ts';

const queue = createQueue();
const named = { payload: z.object({ name: z.string() }) };

const ordinary = defineJob('ordinary', { ...named, queue: 'enqueueing' });
const inTransaction = defineJob('in-transaction', { ...named, queue: 'enqueueing' });
const refused = defineJob('refused', { ...named, queue: 'enqueueing' });
const bulk = defineJob('bulk', { ...named, queue: 'enqueueing' });
const selected = defineJob('selected', { payload: z.object({ n: z.number() }), queue: 'enqueueing' });
const anything = defineJob('anything', { payload: unvalidated<unknown>(), queue: 'enqueueing' });
const later = defineJob('later', { queue: 'enqueueing' });

/** What drivers encode in ways of their own when it is not sent as the text that it is. */
const awkward: readonly unknown[] = [
  'text',
  '10.5',
  '"',
  '',
  10.5,
  -0.1e-7,
  9_007_199_254_740_991,
  true,
  false,
  null,
  [],
  [1, [2, null]],
  {},
  { 'a.b': { ü: '€ 😀 \\ \' " {1,2}' } },
];

export const enqueueing: readonly Behaviour[] = [
  {
    name: 'enqueues without a transaction',
    async run({ db }) {
      const { id, duplicate } = await queue.enqueue(
        db,
        ordinary,
        { name: 'Ada' },
        { metadata: { trace: [1] }, priority: 2 },
      );
      assert.equal(duplicate, false);
      assert.equal(typeof id, 'number');
      const found = await queue.find(db, ordinary, id);
      assert.equal(found?.state, 'due');
      assert.deepEqual(found.payload, { name: 'Ada' });
      assert.deepEqual(found.metadata, { trace: [1] });
      assert.equal(found.priority, 2);
      assert.ok(found.createdAt instanceof Date);
      assert.ok(Math.abs(Date.now() - found.createdAt.getTime()) < 60_000, found.createdAt.toISOString());
    },
  },
  {
    name: 'enqueues with the transaction, or not at all',
    needs: ['transactions'],
    async run({ db }) {
      const { id } = await db.transaction(async (tx) => {
        const enqueued = await queue.enqueue(tx, inTransaction, { name: 'Bo' });
        await tx
          .transaction(async (savepoint) => {
            await queue.enqueue(savepoint, inTransaction, { name: 'undone with the savepoint' });
            throw new Error('undone');
          })
          .catch(() => undefined);
        return enqueued;
      });
      await db
        .transaction(async (tx) => {
          await queue.enqueue(tx, inTransaction, { name: 'undone' });
          throw new Error('undone');
        })
        .catch(() => undefined);
      const { jobs } = await queue.list(db, { job: inTransaction });
      assert.deepEqual(
        jobs.map((job) => [job.id, job.payload.name]),
        [[id, 'Bo']],
      );
    },
  },
  {
    name: 'keeps every payload as it was given',
    async run({ db }) {
      const alone: number[] = [];
      for (const payload of awkward) alone.push((await queue.enqueue(db, anything, payload)).id);
      const entries = awkward.map((payload) => ({ payload }));
      const many = await queue.enqueueMany(db, anything, entries);
      const differing = await queue.enqueueMany(
        db,
        anything,
        entries.map((entry, n) => ({ ...entry, delayMs: n, metadata: { n } })),
      );
      for (const ids of [alone, many.map(({ id }) => id), differing.map(({ id }) => id)]) {
        const records = await Promise.all(ids.map((id) => queue.find(db, anything, id)));
        assert.deepEqual(
          records.map((record) => record?.payload),
          awkward,
        );
      }
      // A JSON text that was encoded twice would read back as it was given, and be a text for everybody else.
      const types = await db.execute(sql`
        select distinct jsonb_typeof(payload) as type from queue_jobs
        where queue = 'enqueueing' and kind = 'anything' order by 1`);
      const expected = ['array', 'boolean', 'null', 'number', 'object', 'string'];
      assert.deepEqual(
        rowsOf(types).map(({ type }) => type),
        expected,
      );
    },
  },
  {
    name: 'an invalid payload leaves the transaction usable',
    needs: ['transactions'],
    async run({ db }) {
      await db.transaction(async (tx) => {
        await assert.rejects(queue.enqueue(tx, refused, { name: 'NUL \0' }), InvalidPayloadError);
        await queue.enqueue(tx, refused, { name: 'valid' });
      });
      const { jobs } = await queue.list(db, { job: refused });
      assert.deepEqual(
        jobs.map((job) => job.payload.name),
        ['valid'],
      );
    },
  },
  {
    name: 'enqueues 2,500 at once, in input order',
    async run({ db }) {
      const names = Array.from({ length: 2_500 }, (_, n) => `n${n}`);
      const enqueued = await queue.enqueueMany(
        db,
        bulk,
        names.map((name) => ({ payload: { name } })),
      );
      const ids = enqueued.map(({ id }) => id);
      assert.equal(new Set(ids).size, names.length);
      assert.deepEqual(
        ids,
        ids.toSorted((a, b) => a - b),
      );
      const last = await queue.find(db, bulk, ids.at(-1) ?? 0);
      assert.equal(last?.payload.name, 'n2499');
    },
  },
  {
    name: 'enqueues one job per row of a select',
    async run({ db }) {
      // What the databases of all drivers have, as one of them types it.
      const builder = db as unknown as PgliteDatabase;
      const rows = builder.select({ n: sql<number>`n`.as('n') }).from(sql`generate_series(1, 3) as n`);
      const done = await queue.enqueueFrom(db, selected, rows);
      assert.deepEqual(done, { enqueued: 3, duplicates: 0 });
      const { jobs } = await queue.list(db, { job: selected });
      assert.deepEqual(
        jobs.map((job) => job.payload.n),
        [3, 2, 1],
      );
    },
  },
  {
    name: 'schedules and cancels',
    async run({ db }) {
      const { id } = await queue.enqueue(db, later, undefined, { runAt: new Date(Date.now() + 3_600_000) });
      assert.equal((await queue.find(db, id))?.state, 'scheduled');
      assert.deepEqual(await queue.cancel(db, id, 'no more'), { cancelled: true });
      const record = await queue.find(db, id);
      assert.equal(record?.state, 'cancelled');
      assert.equal(record.errors[0]?.message, 'no more');
    },
  },
];
