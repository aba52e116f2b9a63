import { bigint, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

/** What the app of the benches writes beside its jobs. */
export const orders = pgTable('orders', {
  id: bigint({ mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  item: text().notNull(),
  quantity: integer().notNull(),
  createdAt: timestamp('created_at', { withTimezone: true }).notNull().defaultNow(),
});

export const createOrders = `create table orders (
  id bigint generated always as identity primary key, item text not null, quantity int not null,
  created_at timestamptz not null default now())`;

export const newOrder = { item: 'a pound of tea', quantity: 2 };

/** What `complete(tx)` may follow: any transaction of Drizzle on Postgres. */
export interface Inserting {
  insert(table: typeof orders): { values(order: typeof newOrder): PromiseLike<unknown> };
}

export async function insertOrder(tx: Inserting): Promise<void> {
  await tx.insert(orders).values(newOrder);
}

/** The app's database: the same driver whichever queue stands beside it. */
export function connectApp(url: string, connections: number) {
  const client = postgres(url, { max: connections, onnotice: () => {} });
  return { client, db: drizzle({ client }), close: () => client.end() };
}
