import { bigint, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/workflows';

const id = () => bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();

export const customers = pgTable('customers', {
  id: id(),
  email: text('email').notNull(),
});

/** What was sent. No key keeps a letter from being here twice: the demo counts. */
export const letters = pgTable('letters', {
  id: id(),
  campaign: text('campaign').notNull(),
  customerId: bigint('customer_id', { mode: 'number' }).notNull(),
  sentAt: timestamp('sent_at', { withTimezone: true }).notNull().defaultNow(),
});

/** What is written once a mailing is over. */
export const reports = pgTable('reports', {
  id: id(),
  campaign: text('campaign').notNull(),
  total: integer('total').notNull(),
  sent: integer('sent').notNull(),
  failed: integer('failed').notNull(),
  writtenAt: timestamp('written_at', { withTimezone: true }).notNull().defaultNow(),
});
