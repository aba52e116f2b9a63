import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  fixedBackoff,
  handlersFor,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { rowsOf } from '../integration/behaviours/behaviour.ts';
import { tables } from '../queries/support/jobs.ts';
import { workflowsStatements } from '../support/control-tables.ts';
import { createDatabase, migrateDatabase } from '../support/databases.ts';
import { startPostgres } from '../support/embedded-postgres.ts';
import { until } from '../support/until.ts';

const ORDERS = 40;
const CRASHES = 4;
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<ReturnType<typeof drizzle>, typeof queue>();
const fulfil = defineJob('fulfil', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
  maxAttempts: 1_000,
});
const parcel = defineJob('parcel', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<string>(),
  backoff: fixedBackoff(0),
  maxAttempts: 1_000,
});
const approval = defineSignal('approval', unvalidated<string>());

/** Repeats what fails while the server is away. */
async function persist<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch {
      // It is about a server that starts.
      await delay(50);
    }
  }
}

test(`orders on a server that crashes ${CRASHES} times: each step once, and no wait is forgotten`, async () => {
  // What was acknowledged must survive a crash.
  const server = await startPostgres({ settings: { synchronous_commit: true } });
  onTestFinished(() => server.stop());
  const { url } = await createDatabase(server.url);
  await migrateDatabase(url);
  const connect = (max: number) => {
    const pool = new pg.Pool({ connectionString: url, max });
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    onTestFinished(() => pool.end());
    return drizzle({ client: pool });
  };
  const db = connect(5);
  for (const statement of await workflowsStatements()) await db.execute(sql.raw(statement));
  await db.execute(sql`create table reserved ("order" int)`);

  // A service that ignores a repeated call.
  const charges = new Map<string, number>();
  let calls = 0;
  for (let workers = 0; workers < 2; workers++) {
    const own = connect(8);
    const worker = createWorker(own, {
      queue,
      log: false,
      handlers: [
        handle(fulfil, async ({ payload: order, step }) => {
          const charge = await step.run('charge', ({ idempotencyKey }) => {
            calls++;
            charges.set(idempotencyKey, order);
            return `charge ${order}`;
          });
          await step.transaction('reserve', async (tx) => {
            await tx.execute(sql`insert into reserved values (${order})`);
          });
          const by = await step.waitForSignal(approval);
          await step.sleep('cool down', 50);
          return [charge, by, await step.waitForJob(await step.enqueue('parcel', parcel, order))];
        }),
        handle(parcel, ({ payload: order }) => `parcel ${order}`),
      ],
    });
    // Its server goes away: what it says of that is no news.
    worker.on('error', () => {});
    onTestFinished(() => worker.stop());
    await worker.start();
  }

  let [placed, crashed] = [0, 0];
  const ids: number[] = [];
  const shop = (async () => {
    for (; placed < ORDERS; placed++) {
      // An order ends only after its answer, so its key still stands when this is repeated.
      const uniqueKey = `order-${placed}`;
      ids.push((await persist(() => queue.enqueue(db, fulfil, placed, { uniqueKey }))).id);
      // The pace of the shop.
      await delay(50);
    }
    for (const [order, id] of ids.entries()) {
      const answer = () => queue.workflows.signal(db, { id }, approval, `Ada ${order}`, { key: 'answer' });
      expect(['sent', 'duplicate', 'gone']).toContain(await persist(answer));
      await delay(50);
    }
  })();
  for (; crashed < CRASHES; crashed++) {
    // Random moments are the point.
    await delay(300 + Math.random() * 700);
    await server.crash();
    await delay(Math.random() * 500);
    await server.restart();
  }
  await shop;
  const isEmpty = async () =>
    rowsOf(await persist(() => db.execute(sql`select from queue_jobs limit 1`))).length === 0;
  await until(isEmpty, { timeoutMs: 120_000 });

  const orders = Array.from({ length: ORDERS }, (_, order) => order);
  for (const [order, id] of ids.entries()) {
    expect(await queue.find(db, fulfil, id)).toMatchObject({
      state: 'completed',
      output: [`charge ${order}`, `Ada ${order}`, `parcel ${order}`],
    });
  }
  expect([...charges.values()].sort((a, b) => a - b)).toEqual(orders);
  expect(calls).toBeGreaterThanOrEqual(ORDERS);
  const reserved = rowsOf(await db.execute(sql`select "order" from reserved order by 1`));
  expect(reserved).toEqual(orders.map((order) => ({ order })));
  const [counts] = rowsOf(
    await db.execute(sql`
    select (select count(*)::int from queue_results where kind = 'parcel') as parcels,
      (select count(*)::int from queue_batches where ended_at is null or pending <> 0) as open,
      (select count(*)::int from queue_tallies) as tallies,
      (select count(*)::int from queue_mailboxes where received <> 1) as unheard`),
  );
  expect(counts).toEqual({ parcels: ORDERS, open: 0, tallies: 0, unheard: 0 });
}, 300_000);
