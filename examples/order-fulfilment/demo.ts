/**
 * Orders are charged, reserved, approved by a clerk, and shipped; or all of it is taken back. Meanwhile the two workers are killed
 * again and again, at random moments. At the end each charge, reservation, parcel and refund is where it belongs.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { approval, fulfil, queue } from './jobs.ts';
import { orders, queueJobs, queueResults, serviceCalls, stockMoves } from './schema.ts';

/** How often a worker is killed. */
const KILLS = Number(process.env.KILLS ?? 10);
const ORDERS = 20 * KILLS;

/** Every other order is expensive, and of those the clerk refuses every third. */
const isExpensive = (n: number) => n % 2 === 1;
const isRefused = (n: number) => isExpensive(n) && n % 3 === 0;

await onStage(import.meta.url, async ({ db, start }) => {
  const workers = [start('worker.ts'), start('worker.ts')];
  await Promise.all(workers.map((worker) => worker.message()));

  const placed: { readonly n: number; readonly orderId: number }[] = [];
  let refused = 0;
  for (let kills = 0; kills < KILLS; kills++) {
    for (let more = 0; more < ORDERS / KILLS; more++) placed.push(await placeOrder(db, placed.length));
    // The clerk is not in a hurry, and has a say about some of the orders of the round before.
    for (const { n, orderId } of placed.slice(-2 * (ORDERS / KILLS), -(ORDERS / KILLS))) {
      refused += await decide(db, n, orderId);
    }
    await delay(Math.random() * 400);
    await workers.shift()?.kill();
    const next = start('worker.ts');
    workers.push(next);
    await next.message();
  }
  console.log(`${KILLS} times a worker was killed. The clerk decides about the rest.`);
  for (const { n, orderId } of placed.slice(-(ORDERS / KILLS))) refused += await decide(db, n, orderId);
  await until('all orders are fulfilled', async () => (await db.$count(queueJobs)) === 0);
  await Promise.all(workers.map((worker) => worker.stop()));

  addUp([
    ['Orders', ORDERS, await db.$count(orders)],
    ['… of them shipped', ORDERS - refused, await db.$count(orders, eq(orders.status, 'shipped'))],
    ['… of them refunded', refused, await db.$count(orders, eq(orders.status, 'refunded'))],
    ['Charges, one for each order', ORDERS, await calls(db, 'charge')],
    ['Parcels, one for each order that was shipped', ORDERS - refused, await calls(db, 'parcel')],
    ['Refunds, one for each order that was not', refused, await calls(db, 'refund')],
    ['Pieces that left the stock', ORDERS, await db.$count(stockMoves, eq(stockMoves.pieces, -1))],
    ['Pieces that came back', refused, await db.$count(stockMoves, eq(stockMoves.pieces, 1))],
    ['Jobs that failed', 0, await db.$count(queueResults, eq(queueResults.state, 'discarded'))],
  ]);
  console.log('Every charge, reservation, parcel and refund is where it belongs.');
});

/** The order and its fulfilment commit together. */
async function placeOrder(db: Stage['db'], n: number): Promise<{ n: number; orderId: number }> {
  const cents = isExpensive(n) ? 99_900 : 1_500;
  return await db.transaction(async (tx) => {
    const [order] = await tx.insert(orders).values({ cents }).returning();
    if (order === undefined) throw new Error('no order');
    await queue.enqueue(tx, fulfil, { orderId: order.id, cents }, { uniqueKey: `order-${order.id}` });
    return { n, orderId: order.id };
  });
}

/** What the clerk does in the back office; 1 where that is a refusal. It is sent twice, as by a browser that was reloaded. */
async function decide(db: Stage['db'], n: number, orderId: number): Promise<number> {
  if (!isExpensive(n)) return 0;
  const to = { job: fulfil, uniqueKey: `order-${orderId}` };
  const answer = { by: 'Ada', ok: !isRefused(n) };
  for (let times = 0; times < 2; times++) {
    await queue.workflows.signal(db, to, approval, answer, { key: `decision-${orderId}` });
  }
  return isRefused(n) ? 1 : 0;
}

async function calls(db: Stage['db'], what: 'charge' | 'refund' | 'parcel'): Promise<number> {
  return await db.$count(serviceCalls, eq(serviceCalls.what, what));
}
