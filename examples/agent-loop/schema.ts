import { bigint, integer, pgTable, text } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/workflows';

const id = () => bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();

/** What a customer asks for, and what the agent has made of it. */
export const tickets = pgTable('tickets', {
  id: id(),
  question: text('question').notNull(),
  state: text('state').$type<'open' | 'answered' | 'over budget'>().notNull().default('open'),
  answer: text('answer'),
  spentCents: integer('spent_cents').notNull().default(0),
});

/** Letters to customers, which the agent writes. */
export const letters = pgTable('letters', {
  id: id(),
  ticketId: bigint('ticket_id', { mode: 'number' }).notNull(),
  body: text('body').notNull(),
});

/** The books of the payment provider, which does each key once. */
export const refunds = pgTable('refunds', {
  key: text('key').primaryKey(),
  ticketId: bigint('ticket_id', { mode: 'number' }).notNull(),
  cents: integer('cents').notNull(),
});
