import { sql } from 'drizzle-orm';
import {
  createQueue,
  defineJob,
  fixedBackoff,
  type HandlerContext,
  handle,
  type TransactionOf,
  unvalidated,
} from 'drizzle-queue';
import { inline, inTransaction } from 'drizzle-queue/testing';
import { describe, expect, test } from 'vitest';
import type { UsedTestDatabase } from '../support/test-database.ts';
import { DATABASES, useDatabaseOn } from './open-databases.ts';

type Tx = TransactionOf<UsedTestDatabase['db']>;

const queue = createQueue();
// Its retry is not due at once, as one with the default backoff may be, whose wait is drawn.
const work = defineJob('work', { payload: unvalidated<{ n: number }>(), backoff: fixedBackoff(3_600_000) });
const parent = defineJob('parent');

function inlined(options: object = {}) {
  const done: number[] = [];
  const handlers = [
    handle(work, async ({ payload, db }) => {
      done.push(payload.n);
      await db.execute(sql`select 1`);
      if (payload.n < 0) throw new Error('below 0');
      return payload.n * 2;
    }),
    handle(parent, async ({ db }: HandlerContext<typeof parent, Tx>) => {
      await q.enqueue(db, work, { n: 7 });
    }),
  ];
  const q = inline(queue, { handlers, ...options });
  return { done, q };
}

describe.each(DATABASES)('inline on %s', (name) => {
  const database = useDatabaseOn(name);
  const inTx = (run: (tx: Tx) => Promise<void>) => () => inTransaction(database.db, run);

  test(
    'runs a job before its enqueue returns, and what that enqueues by it',
    inTx(async (tx) => {
      const { done, q } = inlined();
      const { id, duplicate } = await q.enqueue(tx, work, { n: 1 });
      expect({ duplicate, done }).toEqual({ duplicate: false, done: [1] });
      expect(await q.find(tx, work, id)).toMatchObject({ state: 'completed', output: 2 });
      await q.enqueue(tx, parent);
      expect(done).toEqual([1, 7]);
    }),
  );

  test(
    'runs the jobs of enqueueMany and enqueueFrom in order',
    inTx(async (tx) => {
      const { done, q } = inlined();
      await q.enqueueMany(tx, work, [{ payload: { n: 1 } }, { payload: { n: 2 } }]);
      const rows = tx.select({ n: sql<number>`n`.as('n') }).from(sql`generate_series(3, 5) as n`);
      expect(await q.enqueueFrom(tx, work, rows)).toEqual({ enqueued: 3, duplicates: 0 });
      expect(done.slice(0, 2)).toEqual([1, 2]);
      expect(done.slice(2).sort()).toEqual([3, 4, 5]);
    }),
  );

  test(
    'throws what the handler throws, or leaves the job to its retry',
    inTx(async (tx) => {
      await expect(inlined().q.enqueue(tx, work, { n: -1 })).rejects.toThrow('below 0');
      const { id } = await inlined({ failFast: false }).q.enqueue(tx, work, { n: -1 });
      expect(await queue.find(tx, id)).toMatchObject({ state: 'scheduled', attempt: 1 });
      const { done, q } = inlined({ failFast: false });
      const twice = [-2, -3].map((n) => ({ payload: { n }, replace: { key: 'a' } }));
      await q.enqueueMany(tx, work, twice);
      expect(done).toEqual([-3]);
    }),
  );

  test(
    'refuses a job for later, runs it, or leaves it',
    inTx(async (tx) => {
      const later = { delayMs: 60_000 };
      await expect(inlined().q.enqueue(tx, work, { n: 1 }, later)).rejects.toThrow(
        "inline: a job of 'work' is enqueued for later: give inline { delayed: 'run' }",
      );
      expect((await queue.list(tx)).jobs).toEqual([]);
      const running = inlined({ delayed: 'run' });
      await running.q.enqueue(tx, work, { n: 1 }, { runAt: new Date(Date.now() + 60_000) });
      expect(running.done).toEqual([1]);
      const leaving = inlined({ delayed: 'leave' });
      await leaving.q.enqueue(tx, work, { n: 1 }, later);
      expect(leaving.done).toEqual([]);
    }),
  );

  test(
    'refuses a job that is for later by its row, or by the job that it replaces',
    inTx(async (tx) => {
      const select = () => tx.select({ n: sql<number>`n`.as('n') }).from(sql`generate_series(1, 2) as n`);
      const later = { runAt: () => sql`now() + interval '1 hour'` };
      const forLater = "inline: a job of 'work' is enqueued for later";
      const { done, q } = inlined();
      await expect(q.enqueueFrom(tx, work, select(), later)).rejects.toThrow(forLater);
      await queue.enqueue(tx, work, { n: 3 }, { replace: { key: 'a' }, delayMs: 60_000 });
      const kept = q.enqueue(tx, work, { n: 4 }, { replace: { key: 'a', runAt: 'keep' } });
      await expect(kept).rejects.toThrow(forLater);
      const leaving = inlined({ delayed: 'leave' });
      expect(await leaving.q.enqueueFrom(tx, work, select(), later)).toMatchObject({ enqueued: 2 });
      expect([...done, ...leaving.done]).toEqual([]);
    }),
  );

  test(
    'runs nothing for a duplicate, and nothing in a paused queue',
    inTx(async (tx) => {
      const { done, q } = inlined();
      await queue.enqueue(tx, work, { n: 1 }, { uniqueKey: 'a' });
      expect(await q.enqueue(tx, work, { n: 2 }, { uniqueKey: 'a' })).toMatchObject({ duplicate: true });
      await q.pause(tx, 'default');
      await q.enqueue(tx, work, { n: 3 });
      expect(done).toEqual([]);
    }),
  );

  test(
    'refuses kinds without a handler, and a query that is sent later',
    inTx(async (tx) => {
      const { q } = inlined();
      await expect(q.enqueue(tx, defineJob('unserved'))).rejects.toThrow(
        "inline: there is no handler for the kind 'unserved'",
      );
      expect((await queue.list(tx)).jobs).toEqual([]);
      expect(() => q.enqueueQuery(tx, work, { n: 1 })).toThrow(
        'inline: the query of enqueueQuery is sent later',
      );
      // @ts-expect-error no such way
      expect(() => inline(queue, { handlers: [handle(work, () => 1)], delayed: 'never' })).toThrow(
        "inline: delayed must be refuse, run or leave; got 'never'",
      );
    }),
  );
});
