import { Hono } from 'hono';
import { z } from 'zod';
import type { ShopDatabase } from './database.ts';
import { packOrder, queue, sendReceipt } from './jobs.ts';
import { CardDeclinedError, charge } from './outside-world.ts';
import { orders } from './schema.ts';

const cartSchema = z.object({
  email: z.email(),
  sku: z.string(),
  quantity: z.int().min(1).max(10),
  card: z.string(),
});

export type Cart = z.infer<typeof cartSchema>;

/** The shop's HTTP side: it takes orders and leaves the work that they cause to the workers. */
export function createShop(db: ShopDatabase): Hono {
  const shop = new Hono();

  shop.post('/orders', async (c) => {
    const cart = cartSchema.safeParse(await c.req.json());
    if (!cart.success) return c.json({ error: z.prettifyError(cart.error) }, 400);
    const { card, ...line } = cart.data;

    const orderId = await db.transaction(async (tx) => {
      const [order] = await tx.insert(orders).values(line).returning({ id: orders.id });
      if (order === undefined) throw new Error('The insert returned no order');

      // With `tx`, not `db`: the jobs exist if and only if the order does, and no worker sees them before the order.
      await queue.enqueue(tx, sendReceipt, { orderId: order.id });
      await queue.enqueue(tx, packOrder, { orderId: order.id });

      // A declined card throws, and takes all of the above back. A real shop would not keep a transaction open while it
      // talks to its card processor; this one fails as late as it can, to show that nothing is left behind.
      await charge(card);
      return order.id;
    });
    return c.json({ orderId }, 201);
  });

  shop.onError((error, c) => {
    if (error instanceof CardDeclinedError) return c.json({ error: error.message }, 402);
    console.error(error);
    return c.json({ error: 'Something went wrong' }, 500);
  });

  return shop;
}
