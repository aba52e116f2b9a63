import { bigint, integer, pgTable, timestamp } from 'drizzle-orm/pg-core';

export * from 'drizzle-queue/schema';
export * from 'drizzle-queue/schema/control';

/** One report a night. */
export const reports = pgTable('reports', {
  night: timestamp('night', { withTimezone: true }).primaryKey(),
  sales: integer('sales').notNull(),
  cents: integer('cents').notNull(),
});

export const sales = pgTable('sales', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  cents: integer('cents').notNull(),
  soldAt: timestamp('sold_at', { withTimezone: true }).notNull().defaultNow(),
  /** The report that it is in. */
  night: timestamp('night', { withTimezone: true }).references(() => reports.night),
});
