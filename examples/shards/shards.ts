/** The databases of the tenants. Web app and workers share it. */
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob } from 'drizzle-queue';
import { shardOf } from 'drizzle-queue/shards';
import postgres from 'postgres';
import { z } from 'zod';
import { orders } from './schema.ts';

/** Defined once, whatever the number of databases. */
export const writeInvoice = defineJob('write-invoice', {
  payload: z.object({ tenant: z.string(), orderId: z.number() }),
});

/** With these options a database is used again within seconds of its return: docs/workers.md#postgresjs. */
const shard = (url: string) => ({
  db: drizzle({
    client: postgres(url, { max: 5, fetch_types: false, connect_timeout: 5, backoff: () => 1 }),
  }),
  queue: createQueue(),
});

/** The names decide where a tenant lives, so they never change. */
export function openShards([eu1 = '', eu2 = '', us1 = '', us2 = '']: readonly string[]) {
  return { eu1: shard(eu1), eu2: shard(eu2), us1: shard(us1), us2: shard(us2) };
}

export type Shards = ReturnType<typeof openShards>;

/** An order and its job, in one transaction of the tenant's own database. */
export async function placeOrder(shards: Shards, tenant: string): Promise<void> {
  const { db, queue } = shardOf(shards, tenant);
  await db.transaction(async (tx) => {
    const [order] = await tx.insert(orders).values({ tenant }).returning({ id: orders.id });
    await queue.enqueue(tx, writeInvoice, { tenant, orderId: order?.id ?? 0 });
  });
}

export async function closeShards(shards: Shards): Promise<void> {
  await Promise.all(Object.values(shards).map(({ db }) => db.$client.end({ timeout: 5 })));
}
