/**
 * A process that does the shop's jobs, until SIGINT or SIGTERM. Start as many as you like:
 *
 *     DATABASE_URL=postgres://… node --import tsx examples/shop/worker.ts
 */
import { randomBytes } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { createWorker, handlersFor, NonRetryableError } from 'drizzle-queue';
import { connect } from './database.ts';
import { packOrder, queue, sendReceipt } from './jobs.ts';
import { deliver, MailServerError } from './outside-world.ts';
import { orders, products } from './schema.ts';

// Each handler that is in a transaction keeps a connection: twelve of them, and three for the worker.
const { db, close } = connect({ max: 15 });
const { handle } = handlersFor<typeof db>();

const receipts = handle(sendReceipt, async ({ payload, job, signal, db, complete }) => {
  const [order] = await db.select().from(orders).where(eq(orders.id, payload.orderId));
  // Cannot happen: the job was enqueued in the transaction that inserted the order.
  if (order === undefined) throw new NonRetryableError(`There is no order ${payload.orderId}`);

  // Should this process die before the commit below, another attempt will deliver again: the key tells the mail server.
  const mail = { to: order.email, idempotencyKey: `receipt-${job.id}`, attempt: job.attempt };
  const messageId = await deliver(mail, signal).catch((error: unknown) => {
    // What will never work need not be tried again. Everything else that is thrown is a failed attempt, and is retried.
    if (error instanceof MailServerError && error.code >= 500) throw new NonRetryableError(error.message);
    throw error;
  });

  // One commit for both: the order has its receipt, and the job is done.
  await db.transaction(async (tx) => {
    await tx.update(orders).set({ receiptId: messageId }).where(eq(orders.id, order.id));
    await complete(tx, { messageId });
  });
});

const parcels = handle(packOrder, async ({ payload, job, db, complete }) => {
  await db.transaction(async (tx) => {
    const parcelId = `box-${randomBytes(6).toString('base64url')}`;
    const [order] = await tx
      .update(orders)
      .set({ parcelId })
      .where(eq(orders.id, payload.orderId))
      .returning();
    if (order === undefined) throw new NonRetryableError(`There is no order ${payload.orderId}`);
    await tx
      .update(products)
      .set({ stock: sql`${products.stock} - ${order.quantity}` })
      .where(eq(products.sku, order.sku));

    // Late: the stock is already written. But only in this transaction, so the next attempt does not take it twice.
    if (order.sku === 'vase' && job.attempt === 1) throw new Error('The vase broke while it was packed');

    await complete(tx, { parcelId });
  });
});

const worker = createWorker(db, {
  queue,
  handlers: [receipts, parcels],
  queues: { mail: { concurrency: 8 }, warehouse: { concurrency: 4 } },
});
await worker.run();
await close();
