import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { createQueue, createWorker, defineJob, handlersFor, unvalidated, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import pg from 'pg';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { tables } from '../queries/support/jobs.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<ReturnType<typeof drizzle>, typeof queue>();
const orders = pgTable('orders', { id: integer().notNull() });
const shop = defineJob('shop', { output: unvalidated<unknown>(), maxAttempts: 1 });

beforeAll(async () => {
  await addWorkflowTables(database);
  await database.client`create table orders (id int not null)`;
});

test('a step and a handler that return what node-postgres answered store its rows', async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 5 });
  onTestFinished(() => pool.end());
  const worker = createWorker(drizzle({ client: pool }), {
    queue,
    log: false,
    handlers: [
      handle(shop, async ({ step, db }) => {
        const inserted = await step.transaction('insert', (tx) => tx.insert(orders).values({ id: 1 }));
        const returned = await step.run('select', () => db.execute<{ id: number }>('select id from orders'));
        expect([inserted, returned, returned[0]?.id]).toEqual([[], [{ id: 1 }], 1]);
        return await db.insert(orders).values({ id: 2 });
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  worker.start();
  const { id } = await queue.enqueue(database.db, shop);
  expect(await queue.waitFor(database.db, shop, id)).toMatchObject({ state: 'completed', output: [] });
  const rows = await database.client`select id from orders order by id`;
  expect([...rows]).toEqual([{ id: 1 }, { id: 2 }]);
});
