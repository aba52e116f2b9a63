import { eq, type SQL, sql } from 'drizzle-orm';
import { integer, PgDialect, pgTable, text } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  fixedBackoff,
  type HandlerContext,
  handle,
  LeaseLostError,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { sqlStateOf } from '../../../src/core/sql/executor.ts';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue();
const receipts = pgTable('receipts', {
  orderId: integer('order_id').primaryKey(),
  messageId: text('message_id'),
});
const sendReceipt = defineJob('send-receipt', {
  payload: z.object({ orderId: z.number() }),
  output: z.object({ messageId: z.string() }),
  backoff: fixedBackoff(3_600_000),
});
type Context = HandlerContext<typeof sendReceipt>;

beforeAll(async () => {
  await database.client`create table receipts (order_id int primary key, message_id text)`;
});

beforeEach(async () => {
  await emptyTables(database.client, 'receipts', 'queue_jobs', 'queue_results');
});

const written = async () => (await database.db.select().from(receipts)).map(({ orderId }) => orderId);

/** Enqueues one job, drains with this handler, and answers what became of the job and which events were announced. */
async function run(handler: (context: Context) => Promise<{ messageId: string } | undefined>) {
  const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
  const drained = await drain(database.db, {
    queue,
    handlers: [handle(sendReceipt, handler)],
    deadlineMs: 10_000,
  });
  return { id, drained, record: await queue.find(database.db, sendReceipt, id) };
}

/** Writes the receipt and ends the job, in one transaction. */
async function writeAndComplete({ payload, complete }: Context, after?: () => void): Promise<void> {
  await database.db.transaction(async (tx) => {
    await tx.insert(receipts).values({ orderId: payload.orderId, messageId: 'm-1' });
    await complete(tx, { messageId: 'm-1' });
    after?.();
  });
}

describe('complete(tx)', () => {
  test('the end of the job and the writes commit together, and nothing is settled twice', async () => {
    const { record, drained } = await run(async (context) => {
      await writeAndComplete(context);
      return { messageId: 'ignored' };
    });
    expect(record).toMatchObject({
      state: 'completed',
      output: { messageId: 'm-1' },
      attempt: 1,
      errors: [],
    });
    expect(await written()).toEqual([7]);
    expect(drained).toMatchObject({ completed: 1, failed: 0 });
  });

  test('a throw inside the transaction undoes both', async () => {
    const { record } = await run(async (context) => {
      await writeAndComplete(context, () => {
        throw new Error('after complete');
      });
      return undefined;
    });
    expect(record).toMatchObject({ state: 'scheduled', errors: [{ message: 'after complete' }] });
    expect(await written()).toEqual([]);
  });

  test('a rollback that the handler swallows is a failed attempt, not a completed job', async () => {
    const { record } = await run(async (context) => {
      await writeAndComplete(context, () => {
        throw new Error('swallowed');
      }).catch(() => undefined);
      return { messageId: 'm-2' };
    });
    expect(record).toMatchObject({
      state: 'scheduled',
      errors: [{ message: expect.stringContaining('did not commit') }],
    });
    expect(await written()).toEqual([]);
  });

  test('a throw after the commit changes nothing any more', async () => {
    const { record, drained } = await run(async (context) => {
      await writeAndComplete(context);
      throw new Error('too late');
    });
    expect(record).toMatchObject({ state: 'completed', errors: [] });
    expect(drained).toMatchObject({ completed: 1, failed: 0 });
  });

  test('a job that has committed is completed, however often the question about it loses its connection', async () => {
    let lost = 0;
    const dialect = new PgDialect();
    const execute = async (query: SQL) => {
      if (dialect.sqlToQuery(query).sql.includes('coalesce(j.fence, r.fence)') && lost < 4) {
        lost++;
        throw new Error('Connection terminated unexpectedly');
      }
      return await database.db.execute(query);
    };
    const db: typeof database.db = Object.create(database.db, { execute: { value: execute } });
    const worker = createWorker(db, { queue, handlers: [handle(sendReceipt, writeAndComplete)] });
    onTestFinished(() => worker.stop());
    const told: string[] = [];
    for (const event of ['completed', 'failed', 'lost'] as const) worker.on(event, () => told.push(event));
    worker.on('error', () => undefined);
    const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
    await worker.start();
    await until(() => told.length > 0);
    expect(told).toEqual(['completed']);
    expect(lost).toBe(4);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed' });
  });

  test('a worker that has lost the job gets LeaseLostError, and its writes roll back', async () => {
    let thrown: unknown;
    const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(sendReceipt, async (context) => {
          // Another worker, which lives, claims it: as after a declared death.
          await database.client`
            insert into queue_workers (id, name, queues) overriding system value values (424242, 'other', '[]')
            on conflict do nothing`;
          await database.db
            .update(queueJobs)
            .set({ fence: sql`fence + 1`, workerId: 424_242 })
            .where(eq(queueJobs.id, id));
          await writeAndComplete(context).catch((error: unknown) => {
            thrown = error;
            throw error;
          });
        }),
      ],
    });
    const lost = nextEvent(worker, 'lost');
    await worker.start();
    const [{ job }] = await lost;
    await worker.stop();
    expect(job.id).toBe(id);
    expect(thrown).toBeInstanceOf(LeaseLostError);
    expect(await written()).toEqual([]);
    const [row] = await database.db.select().from(queueJobs);
    expect(row).toMatchObject({ workerId: 424_242, errors: [] });
  });

  test.each([
    ['throws', true],
    ['swallows that', false],
  ])(
    'a job whose complete was rolled back, and which another worker holds now, is announced as lost: its handler %s',
    async (_, throws) => {
      const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
      const worker = createWorker(database.db, {
        queue,
        handlers: [
          handle(sendReceipt, async ({ complete }) => {
            const broken = new Error('the connection broke');
            const transaction = database.db.transaction(async (tx) => {
              await complete(tx, { messageId: 'm' });
              throw broken;
            });
            await expect(transaction).rejects.toBe(broken);
            await database.db
              .update(queueJobs)
              .set({ fence: sql`fence + 1`, workerId: null, runAt: new Date(Date.now() + 3_600_000) })
              .where(eq(queueJobs.id, id));
            if (throws) throw broken;
            // What it returns was given to complete().
            return undefined as never;
          }),
        ],
      });
      const completed: number[] = [];
      worker.on('completed', ({ job }) => completed.push(job.id));
      const lost = nextEvent(worker, 'lost');
      await worker.start();
      expect((await lost)[0].job.id).toBe(id);
      await worker.stop();
      expect(completed).toEqual([]);
    },
  );

  test('is refused twice, without a transaction, and with an invalid output', async () => {
    const messages: string[] = [];
    const note = (error: unknown) => messages.push(error instanceof Error ? error.message : String(error));
    const { record } = await run(async ({ complete }) => {
      // @ts-expect-error a database is no transaction
      await complete(database.db, { messageId: 'x' }).catch(note);
      await database.db.transaction(async (tx) => {
        // @ts-expect-error the output has another type
        await complete(tx, { messageId: 5 }).catch(note);
        await complete(tx, { messageId: 'm' });
        await complete(tx, { messageId: 'n' }).catch(note);
      });
      return undefined;
    });
    expect(messages).toEqual([
      expect.stringContaining('takes a transaction'),
      expect.stringContaining('messageId'),
      expect.stringContaining('complete has already been called'),
    ]);
    expect(record).toMatchObject({ state: 'completed', output: { messageId: 'm' } });
  });

  test('an open transaction that has completed its job holds up no other settling', async () => {
    // It must have completed its job before.
    const slow = defineJob('slow', { timeoutMs: 2_000 });
    const quick = defineJob('quick');
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let tries = 0;
    onTestFinished(() => atFaultPoints());
    atFaultPoints(async (point) => {
      if (point === 'settle: written') tries++;
    });
    await queue.enqueue(database.db, slow);
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(slow, async ({ complete }) => {
          await database.db.transaction(async (tx) => {
            await complete(tx);
            await released;
          });
        }),
        handle(quick, async () => {}),
      ],
    });
    await worker.start();
    // After its timeout the slow job's settling finds the row locked that the open transaction has deleted.
    await until(() => tries >= 2);
    const completed = nextEvent(worker, 'completed');
    await queue.enqueue(database.db, quick);
    const [{ job }] = await completed;
    expect(job.kind).toBe('quick');
    const slowDone = nextEvent(worker, 'completed');
    release();
    expect((await slowDone)[0].job.kind).toBe('slow');
    await worker.stop();
  });

  test('is called again after its transaction has rolled back, as by a handler that retries', async () => {
    let tries = 0;
    const { record, drained } = await run(async (context) => {
      for (;;) {
        try {
          await writeAndComplete(context, () => {
            if (++tries < 3) throw new Error('could not serialize access');
          });
          return undefined;
        } catch (error) {
          if (tries >= 3) throw error;
        }
      }
    });
    expect(tries).toBe(3);
    expect(record).toMatchObject({
      state: 'completed',
      attempt: 1,
      errors: [],
      output: { messageId: 'm-1' },
    });
    expect(drained).toMatchObject({ completed: 1, failed: 0 });
    expect(await written()).toEqual([7]);
  });

  test('is called again after its own statement was refused by the database', async () => {
    const { id } = await queue.enqueue(database.db, sendReceipt, { orderId: 7 });
    let codes: unknown[] = [];
    const handler = handle(sendReceipt, async ({ complete }) => {
      for (let tries = 1; ; tries++) {
        try {
          await database.db.transaction(
            async (tx) => {
              await tx.insert(receipts).values({ orderId: 7, messageId: 'm' });
              // Somebody else's change, which this transaction's snapshot does not see.
              if (tries === 1)
                await database.db.update(queueJobs).set({ progress: { tries } }).where(eq(queueJobs.id, id));
              await complete(tx, { messageId: `try ${tries}` });
            },
            { isolationLevel: 'repeatable read' },
          );
          return;
        } catch (error) {
          codes = [...codes, sqlStateOf(error)];
          if (tries === 2) throw error;
        }
      }
    });
    await drain(database.db, { queue, handlers: [handler], deadlineMs: 10_000 });
    expect(codes).toEqual(['40001']);
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'completed',
      attempt: 1,
      output: { messageId: 'try 2' },
    });
  });

  test('after a transaction that has committed it is refused, and nothing of the second is kept', async () => {
    let refused: unknown;
    const { record } = await run(async (context) => {
      await database.db.transaction((tx) => context.complete(tx, { messageId: 'first' }));
      refused = await writeAndComplete(context).catch((error: unknown) => error);
      return undefined;
    });
    expect(refused).toBeInstanceOf(LeaseLostError);
    expect(refused).toMatchObject({ message: expect.stringContaining('complete has already been called') });
    expect(record).toMatchObject({ state: 'completed', output: { messageId: 'first' } });
    expect(await written()).toEqual([]);
  });

  test('in two savepoints of one transaction, of which the first rolls back, the second ends the job', async () => {
    const { record } = await run(async ({ complete }) => {
      await database.db.transaction(async (tx) => {
        const undone = tx.transaction(async (savepoint) => {
          await complete(savepoint, { messageId: 'undone' });
          savepoint.rollback();
        });
        await expect(undone).rejects.toThrow();
        await tx.transaction((savepoint) => complete(savepoint, { messageId: 'kept' }));
      });
      return undefined;
    });
    expect(record).toMatchObject({ state: 'completed', output: { messageId: 'kept' } });
  });

  test('in a savepoint that rolls back while the outer transaction commits, the job is not done', async () => {
    const { record, drained } = await run(async ({ payload, complete }) => {
      await database.db.transaction(async (tx) => {
        await tx.insert(receipts).values({ orderId: payload.orderId });
        const undone = tx.transaction(async (savepoint) => {
          await complete(savepoint, { messageId: 'undone' });
          savepoint.rollback();
        });
        await expect(undone).rejects.toThrow();
      });
      return undefined;
    });
    expect(record).toMatchObject({
      state: 'scheduled',
      errors: [{ message: expect.stringContaining('commit') }],
    });
    expect(drained).toMatchObject({ completed: 0, failed: 1 });
    expect(await written()).toEqual([7]);
  });

  test('while its first transaction is open, a second is refused instead of waiting for it for ever', async () => {
    let refused: unknown;
    const { record } = await run(async ({ complete }) => {
      await database.db.transaction(async (outer) => {
        await complete(outer, { messageId: 'outer' });
        const inner = database.db.transaction((tx) => complete(tx, { messageId: 'inner' }));
        refused = await inner.catch((error: unknown) => error);
      });
      return undefined;
    });
    expect(refused).toBeInstanceOf(LeaseLostError);
    expect(refused).toMatchObject({ message: expect.stringContaining('still open') });
    expect(record).toMatchObject({ state: 'completed', output: { messageId: 'outer' } });
  });

  test('called twice at once, in one transaction or in two, it ends the job once', async () => {
    for (const inTwo of [false, true]) {
      const { record } = await run(async ({ complete }) => {
        await database.db.transaction(async (one) => {
          const both = [
            complete(one, { messageId: 'one' }),
            inTwo
              ? database.db.transaction((other) => complete(other, { messageId: 'other' }))
              : complete(one, { messageId: 'other' }),
          ];
          const settled = await Promise.allSettled(both);
          const refused = settled.filter(({ status }) => status === 'rejected');
          expect(refused).toMatchObject([{ reason: { name: 'LeaseLostError' } }]);
        });
        return undefined;
      });
      expect(record).toMatchObject({ state: 'completed', attempt: 1, output: { messageId: 'one' } });
    }
  });
});
