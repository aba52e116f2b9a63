import { setTimeout as delay } from 'node:timers/promises';
import { createQueue, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { expect, onTestFinished, test } from 'vitest';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess, type WorkerProcess } from '../worker/worker-process.ts';
import { approval, fulfil } from './fixtures/fulfil.ts';

const database = useTestDatabase({ max: 5 });
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const ORDERS = 60;
const KILLS = 12;

test(`orders whose workers are killed ${KILLS} times: each charge, reservation, parcel and refund once`, async () => {
  await addWorkflowTables(database);
  await database.client`create table calls (what text, "order" int, key text primary key, times int default 1)`;
  await database.client`create table stock ("order" int, change int)`;
  await database.client`create table fulfilled ("order" int)`;
  const start = () =>
    startWorkerProcess('workflows/fixtures/fulfil-worker.ts', { DATABASE_URL: database.url });
  const workers: WorkerProcess[] = [start(), start()];
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.end('SIGKILL')));
  });
  await Promise.all(workers.map((worker) => worker.printed('ready')));

  const ids: number[] = [];
  for (let order = 0; order < ORDERS; order++) {
    const { id } = await queue.enqueue(database.db, fulfil, { order, inStock: order % 3 !== 0 });
    ids.push(id);
  }
  // Half of the answers come before their waits, the others during them.
  let answered = 0;
  for (let kills = 0; kills < KILLS; kills++) {
    for (const upTo = ((kills + 1) * ORDERS) / KILLS; answered < upTo; answered++) {
      const id = ids[answered];
      if (id === undefined) break;
      const sent = await queue.workflows.signal(database.db, { id }, approval, { ok: answered % 5 !== 0 });
      expect(sent).toBe('sent');
    }
    // Random moments are the point.
    await delay(Math.random() * 600);
    const victim = workers.shift();
    await victim?.end('SIGKILL');
    const next = start();
    workers.push(next);
    await next.printed('ready');
  }
  await until(async () => (await database.client`select from queue_jobs`).length === 0);

  const shipped = (order: number) => order % 3 !== 0 && order % 5 !== 0;
  const orders = Array.from({ length: ORDERS }, (_, order) => order);
  const results = await database.client<{ order: number; state: string }[]>`
    select (payload ->> 'order')::int as order, state from queue_results order by 1`;
  expect(results).toEqual(
    orders.map((order) => ({ order, state: shipped(order) ? 'completed' : 'discarded' })),
  );
  const called = async (what: string) =>
    (await database.client`select "order" from calls where what = ${what} order by 1`).map(
      (row) => row.order,
    );
  // One key each: whatever was called again was the same call.
  expect(await called('charge')).toEqual(orders);
  expect(await called('ship')).toEqual(orders.filter(shipped));
  expect(await called('refund')).toEqual(orders.filter((order) => !shipped(order)));
  const stock = await database.client`
    select "order", array_agg(change order by change) as changes from stock group by 1 order by 1`;
  expect(stock.map(({ order, changes }) => [order, changes])).toEqual(
    orders.map((order) => [order, shipped(order) ? [-1] : [-1, 1]]),
  );
  const fulfilled = await database.client`select "order" from fulfilled order by 1`;
  expect(fulfilled.map(({ order }) => order)).toEqual(orders.filter(shipped));
}, 300_000);
