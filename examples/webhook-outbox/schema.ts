import { bigint, integer, jsonb, pgTable, text, timestamp } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/control';

const id = () => bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();
const time = (name: string) => timestamp(name, { withTimezone: true });

export const orders = pgTable('orders', {
  id: id(),
  email: text('email').notNull(),
  cents: integer('cents').notNull(),
  placedAt: time('placed_at').notNull().defaultNow(),
});

/** Where a customer wants to hear of events. */
export const endpoints = pgTable('webhook_endpoints', {
  id: id(),
  url: text('url').notNull(),
  /** `whsec_` and at least 24 random bytes in base64, one for each endpoint. */
  secret: text('secret').notNull(),
  /** Since when it gets no more events. */
  disabledAt: time('disabled_at'),
});

/** The receiver's; in earnest in its own database. The key is what makes of several deliveries one event. */
export const receivedEvents = pgTable('received_events', {
  webhookId: text('webhook_id').primaryKey(),
  type: text('type').notNull(),
  data: jsonb('data').$type<{ orderId: number; cents: number }>().notNull(),
});

/** Each request that the receiver has answered, or meant to: for the demo. */
export const receivedRequests = pgTable('received_requests', {
  id: id(),
  webhookId: text('webhook_id').notNull(),
  status: integer('status').notNull(),
  receivedAt: time('received_at').notNull(),
});
