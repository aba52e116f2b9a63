/**
 * Orders are charged, reserved, approved by a clerk, and shipped; or all of it is taken back. Meanwhile the two workers are killed
 * again and again, at random moments. At the end each charge, reservation, parcel and refund is where it belongs.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { approve } from './approvals.ts';
import { fulfil, queue } from './jobs.ts';
import { mails, orders, queueJobs, queueResults, serviceCalls, stockMoves } from './schema.ts';

/** How often a worker is killed. */
const KILLS = Number(process.env.KILLS ?? 10);
const ORDERS = 20 * KILLS;

/** Every other order is expensive, and of those the clerk refuses every third. */
const isExpensive = (n: number) => n % 2 === 1;
const isRefused = (n: number) => isExpensive(n) && n % 3 === 0;
const EXPENSIVE = numberOf(isExpensive);
const REFUSED = numberOf(isRefused);

await onStage(import.meta.url, async ({ db, start }) => {
  const workers = [start('worker.ts'), start('worker.ts')];
  await Promise.all(workers.map((worker) => worker.message()));

  /** Which order it was, by its id. */
  const placed = new Map<number, number>();
  const decided = new Set<string>();
  for (let kills = 0; kills < KILLS; kills++) {
    for (let more = 0; more < ORDERS / KILLS; more++) {
      placed.set(await placeOrder(db, placed.size), placed.size);
    }
    await readMails(db, placed, decided);
    await delay(Math.random() * 400);
    await workers.shift()?.kill();
    const next = start('worker.ts');
    workers.push(next);
    await next.message();
  }
  console.log(`${KILLS} times a worker was killed. The clerk decides about the rest.`);
  await until('the clerk has decided', async () => {
    await readMails(db, placed, decided);
    return decided.size === EXPENSIVE;
  });
  await until('all orders are fulfilled', async () => (await db.$count(queueJobs)) === 0);
  await Promise.all(workers.map((worker) => worker.stop()));

  addUp([
    ['Orders', ORDERS, await db.$count(orders)],
    ['… of them shipped', ORDERS - REFUSED, await db.$count(orders, eq(orders.status, 'shipped'))],
    ['… of them refunded', REFUSED, await db.$count(orders, eq(orders.status, 'refunded'))],
    ['Charges, one for each order', ORDERS, await calls(db, 'charge')],
    ['Mails with a link, one for each expensive order', EXPENSIVE, await db.$count(mails)],
    ['Parcels, one for each order that was shipped', ORDERS - REFUSED, await calls(db, 'parcel')],
    ['Refunds, one for each order that was not', REFUSED, await calls(db, 'refund')],
    ['Pieces that left the stock', ORDERS, await db.$count(stockMoves, eq(stockMoves.pieces, -1))],
    ['Pieces that came back', REFUSED, await db.$count(stockMoves, eq(stockMoves.pieces, 1))],
    ['Jobs that failed', 0, await db.$count(queueResults, eq(queueResults.state, 'discarded'))],
  ]);
  console.log('Every charge, reservation, parcel and refund is where it belongs.');
});

/** The order and its fulfilment commit together. */
async function placeOrder(db: Stage['db'], n: number): Promise<number> {
  const cents = isExpensive(n) ? 99_900 : 1_500;
  return await db.transaction(async (tx) => {
    const [order] = await tx.insert(orders).values({ cents }).returning();
    if (order === undefined) throw new Error('no order');
    await queue.enqueue(tx, fulfil, { orderId: order.id, cents }, { uniqueKey: `order-${order.id}` });
    return order.id;
  });
}

/** The clerk opens the links in the mailbox, and presses one button of each page twice, as impatient people do. */
async function readMails(
  db: Stage['db'],
  placed: ReadonlyMap<number, number>,
  decided: Set<string>,
): Promise<void> {
  for (const { link, orderId } of await db.select().from(mails)) {
    if (decided.has(link)) continue;
    const decision = isRefused(placed.get(orderId) ?? Number.NaN) ? 'refuse' : 'ship';
    for (let times = 0; times < 2; times++) {
      const body = new URLSearchParams({ by: 'Ada', decision });
      await approve(db, new Request(link, { method: 'POST', body }));
    }
    decided.add(link);
  }
}

function numberOf(isOne: (n: number) => boolean): number {
  return Array.from({ length: ORDERS }, (_, n) => n).filter(isOne).length;
}

async function calls(db: Stage['db'], what: 'charge' | 'refund' | 'parcel'): Promise<number> {
  return await db.$count(serviceCalls, eq(serviceCalls.what, what));
}
