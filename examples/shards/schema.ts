import { bigint, pgTable, text } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';

const id = () => bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();

/** The orders of the tenants that live in this database. */
export const orders = pgTable('orders', { id: id(), tenant: text('tenant').notNull() });

export const invoices = pgTable('invoices', {
  id: id(),
  tenant: text('tenant').notNull(),
  orderId: bigint('order_id', { mode: 'number' })
    .notNull()
    .references(() => orders.id),
});
