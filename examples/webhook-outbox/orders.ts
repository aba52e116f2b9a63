import { isNull } from 'drizzle-orm';
import type { DbOrTx } from 'drizzle-queue';
import type { Database } from './database.ts';
import { deliverEvent, queue } from './jobs.ts';
import { endpoints, orders } from './schema.ts';

export interface Cart {
  readonly email: string;
  readonly cents: number;
  /** What else the order writes, such as to the stock. @throws when there is none left */
  reserve(tx: DbOrTx<Database>): Promise<void>;
}

/** Places an order. Its events commit with it: each endpoint hears of it, or, after a rollback, nobody does. */
export async function placeOrder(db: Database, { email, cents, reserve }: Cart): Promise<number> {
  return await db.transaction(async (tx) => {
    const [order] = await tx.insert(orders).values({ email, cents }).returning();
    if (order === undefined) throw new Error('The insert returned no order');
    const listening = await tx
      .select({ id: endpoints.id })
      .from(endpoints)
      .where(isNull(endpoints.disabledAt));
    const event = {
      type: 'order.placed',
      timestamp: order.placedAt.toISOString(),
      data: { orderId: order.id, cents },
    };
    await queue.enqueueMany(
      tx,
      deliverEvent,
      listening.map(({ id }) => ({ payload: { endpointId: id, ...event } })),
    );
    // Last, to show that nothing is left behind. Whatever asks another system, such as for the money, is no part of a
    // transaction: it would keep a connection and locks for as long as that takes, and not be undone with it.
    await reserve(tx);
    return order.id;
  });
}
