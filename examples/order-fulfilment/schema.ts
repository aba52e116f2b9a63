import { bigint, integer, pgTable, text } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/workflows';

const id = () => bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();

export const orders = pgTable('orders', {
  id: id(),
  cents: integer('cents').notNull(),
  status: text('status').$type<'placed' | 'shipped' | 'refunded'>().notNull().default('placed'),
});

/** What is taken out of the stock for an order, and what comes back. */
export const stockMoves = pgTable('stock_moves', {
  id: id(),
  orderId: bigint('order_id', { mode: 'number' }).notNull(),
  pieces: integer('pieces').notNull(),
});

/** The mailbox of the clerk: a link for each expensive order. */
export const mails = pgTable('mails', {
  link: text('link').primaryKey(),
  orderId: bigint('order_id', { mode: 'number' }).notNull(),
});

/** The books of the payment provider and of the parcel service, which belong to others. They do each key once. */
export const serviceCalls = pgTable('service_calls', {
  key: text('key').primaryKey(),
  what: text('what').$type<'charge' | 'refund' | 'parcel'>().notNull(),
  orderId: bigint('order_id', { mode: 'number' }).notNull(),
  /** How often it was called. */
  times: integer('times').notNull().default(1),
});
