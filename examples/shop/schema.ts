import { sql } from 'drizzle-orm';
import { check, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';

// This line is the whole installation: from here on the queue's tables are part of the shop's own schema and migrations.
export * from 'drizzle-queue/schema';
// One table more, in which workers count what they do: the dashboard's charts stand on it.
export * from 'drizzle-queue/schema/metrics';

export const products = pgTable(
  'products',
  {
    sku: text('sku').primaryKey(),
    stock: integer('stock').notNull(),
  },
  () => [check('products_stock_check', sql`stock >= 0`)],
);

export const orders = pgTable('orders', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  email: text('email').notNull(),
  sku: text('sku')
    .notNull()
    .references(() => products.sku),
  quantity: integer('quantity').notNull(),
  placedAt: timestamp('placed_at', { withTimezone: true }).notNull().defaultNow(),
  /** The receipt that was mailed; written by the job that mailed it. */
  receiptId: text('receipt_id'),
  /** The parcel that it lies in; written by the job that packed it. */
  parcelId: text('parcel_id'),
});
