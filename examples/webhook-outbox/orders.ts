import { isNull } from 'drizzle-orm';
import type { Database } from './database.ts';
import { deliverEvent, queue } from './jobs.ts';
import { endpoints, orders } from './schema.ts';

export interface Cart {
  readonly email: string;
  readonly cents: number;
  /** What takes the money. @throws when the card is declined */
  charge(): Promise<void>;
}

/** Places an order. Its events commit with it: each endpoint hears of it, or, after a rollback, nobody does. */
export async function placeOrder(db: Database, { email, cents, charge }: Cart): Promise<number> {
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
    // As late as can be, to show that nothing is left behind. A real shop charges before its transaction.
    await charge();
    return order.id;
  });
}
