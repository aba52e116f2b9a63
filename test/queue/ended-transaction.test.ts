import { sql } from 'drizzle-orm';
import {
  createQueue,
  type Database,
  defineJob,
  QueueError,
  type Transaction,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { drivers } from './support/drivers.ts';

const database = useTestDatabase();
const queue = createQueue();
const strict = createQueue({ requireTransaction: true });
const job = defineJob('job', { payload: unvalidated<number>() });

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

const payloadsOf = async ({ kind }: { kind: string }): Promise<unknown> =>
  (await database.client`select payload from queue_jobs where kind = ${kind}`).map(({ payload }) => payload);

/** A transaction, and a savepoint of it, both after their end. */
async function ended(db: Database): Promise<readonly [Transaction, Transaction]> {
  return await db.transaction(async (tx) => await tx.transaction(async (inner) => [tx, inner] as const));
}

describe('an enqueue in a transaction that has ended', () => {
  test('is refused on node-postgres, which knows, and nothing is sent', async () => {
    const { db, close } = await drivers['node-postgres'](database);
    const message = 'this transaction has ended, so the job would be committed by itself';
    for (const tx of await ended(db)) {
      const calls: [string, Promise<unknown>][] = [
        ['enqueue', queue.enqueue(tx, job, 1)],
        ['enqueue', strict.enqueue(tx, job, 1)],
        ['enqueueMany', queue.enqueueMany(tx, job, [{ payload: 1 }])],
      ];
      for (const [name, call] of calls) {
        await expect(call).rejects.toThrow(QueueError);
        await expect(call).rejects.toThrow(`${name}: ${message}`);
      }
    }
    expect(await payloadsOf(job)).toEqual([]);
    await close();
  });

  test('is refused after a rollback, too, and in none that is open', async () => {
    const { db, close } = await drivers['node-postgres'](database);
    let left: Transaction | undefined;
    const undone = db.transaction(async (tx) => {
      left = tx;
      await tx.execute(sql`select 1`);
      await queue.enqueue(tx, job, 1);
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
    await expect(left && queue.enqueue(left, job, 1)).rejects.toThrow('has ended');
    await db.transaction(async (tx) => {
      await queue.enqueue(tx, job, 2);
      await tx.transaction((inner) => strict.enqueue(inner, job, 3));
      // In an aborted transaction it is the server that refuses.
      const failed = tx.transaction(async (inner) => await inner.execute(sql`select 1 / 0`));
      await expect(failed).rejects.toThrow();
      await queue.enqueue(tx, job, 4);
    });
    await queue.enqueue(db, job, 5);
    expect(await payloadsOf(job)).toEqual([2, 3, 4, 5]);
    await close();
  });

  describe('is refused on node-postgres where it was rolled back while the enqueue had not yet sent anything', () => {
    let rolledBack = gate();
    const flows = createQueue({ workflows: workflowsIn(workflowTables) });
    const around = createQueue({
      around: {
        enqueue: async (_, next) => {
          await rolledBack.opened;
          await next();
        },
      },
    });
    const validate = async (value: unknown) => {
      await rolledBack.opened;
      return { value: Number(value) };
    };
    const checked = defineJob('job', { payload: { '~standard': { version: 1, vendor: 'test', validate } } });

    test.each<[string, (tx: Transaction) => Promise<unknown>]>([
      ['the schema is asynchronous', (tx) => queue.enqueue(tx, checked, 1)],
      ['many', (tx) => queue.enqueueMany(tx, checked, [{ payload: 1 }, { payload: 2 }])],
      ['with a rule for the key', (tx) => queue.enqueue(tx, checked, 1, { replace: { key: 'a' } })],
      ['around.enqueue waits', (tx) => around.enqueue(tx, job, 1)],
      [
        'around.enqueue waits, rows of a select',
        (tx) => {
          const one = database.db.select({ n: sql<number>`1`.as('n') }).from(sql`(select 1) as one`);
          return around.enqueueFrom(tx, defineJob('job', { payload: unvalidated<{ n: number }>() }), one);
        },
      ],
      [
        'the last job of a batch has an asynchronous schema',
        (tx) => flows.workflows.enqueueBatch(tx, job, [{ payload: 2 }], { last: checked, payload: 1 }),
      ],
      [
        'a flow is built in time',
        (tx) =>
          flows.workflows.enqueueFlow(tx, async (flow) => {
            await rolledBack.opened;
            flow.add(job, 1);
          }),
      ],
      [
        'a job of a flow has an asynchronous schema',
        (tx) => flows.workflows.enqueueFlow(tx, (flow) => void flow.add(checked, 1)),
      ],
    ])('%s', async (_, enqueue) => {
      rolledBack = gate();
      const { db, close } = await drivers['node-postgres'](database);
      let enqueued: Promise<unknown> | undefined;
      const undone = db.transaction(async (tx) => {
        enqueued = enqueue(tx);
        enqueued.catch(() => {});
        await Promise.all([enqueued, tx.execute(sql`select 1 / 0`)]);
      });
      await expect(undone).rejects.toThrow();
      rolledBack.open();
      await expect(enqueued).rejects.toThrow('this transaction has ended');
      expect(await payloadsOf(job)).toEqual([]);
      expect(await database.client`select from queue_batches`).toHaveLength(0);
      await close();
    });
  });

  test('is refused by PGlite itself', async () => {
    const { db, close } = await drivers.PGlite();
    for (const tx of await ended(db)) {
      await expect(queue.enqueue(tx, job, 1)).rejects.toThrow();
    }
    expect((await queue.list(db)).jobs).toEqual([]);
    await close();
  });

  test('commits by itself on postgres.js, as the documentation says: nothing there tells', async () => {
    for (const tx of await ended(database.db)) await queue.enqueue(tx, job, 1);
    expect(await payloadsOf(job)).toEqual([1, 1]);
  });
});
