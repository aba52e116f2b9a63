import { bigint, integer, pgTable, text, timestamp, unique } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/control';

const id = () => bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();
const time = (name: string) => timestamp(name, { withTimezone: true });

/** One run of an export: a crash leaves one without an end. */
export const exportRuns = pgTable('export_runs', {
  id: id(),
  tenant: text('tenant').notNull(),
  pid: integer('pid').notNull(),
  startedAt: time('started_at').notNull(),
  endedAt: time('ended_at'),
});

/** The entries of accounts, in the order in which they were booked. */
export const entries = pgTable(
  'entries',
  {
    id: id(),
    account: text('account').notNull(),
    number: integer('number').notNull(),
    cents: integer('cents').notNull(),
    /** The sum of the account's entries so far. */
    balance: integer('balance').notNull(),
  },
  (t) => [unique().on(t.account, t.number)],
);
