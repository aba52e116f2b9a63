/**
 * What a code block of the documentation may use without an import or a declaration of its own: the names of the libraries, and
 * the small shop that all pages speak of. A name that the block, or a file of its page, declares itself comes first.
 */
import { bigint, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  defineJob,
  defineSignal,
  exponentialBackoff,
  type Handler,
  type Step,
  type TransactionOf,
  unvalidated,
} from 'drizzle-queue';
import type postgres from 'postgres';
import { z } from 'zod';

export { and, asc, count, desc, eq, gte, inArray, isNull, lt, sql } from 'drizzle-orm';
export * from 'drizzle-queue';
export { createDashboard } from 'drizzle-queue/dashboard';
export { queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
export * from 'drizzle-queue/testing';
export { expect, test } from 'vitest';
export { z };

export const orders = pgTable('orders', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  email: text('email').notNull(),
  totalCents: integer('total_cents').notNull(),
  placedAt: timestamp('placed_at', { withTimezone: true }).notNull().defaultNow(),
  receiptId: text('receipt_id'),
  /** The job that sends the receipt. */
  receiptJobId: bigint('receipt_job_id', { mode: 'number' }),
});

export const users = pgTable('users', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  email: text('email').notNull(),
  trialEndsAt: timestamp('trial_ends_at', { withTimezone: true }),
});

const connect = (url: string) => drizzle(url);

/** The app's own database, through one of the drivers. */
export declare const db: ReturnType<typeof connect>;
export declare const tx: TransactionOf<typeof db>;
/** The driver's own client, or pool. */
export declare const client: postgres.Sql;

export declare const cart: { email: string; totalCents: number };
export declare const order: typeof orders.$inferSelect;

/** Who the request is for. */
export declare const tenant: string;

/** The app's own session of a request. */
export declare function userOf(request: Request): Promise<{ name: string; isAdmin: boolean } | undefined>;
export declare const dashboard: import('drizzle-queue/dashboard').Dashboard;

/** Services of others. */
export declare const payments: {
  charge(
    orderId: number,
    cents: number,
    options?: { signal?: AbortSignal; idempotencyKey?: string },
  ): Promise<{ id: string }>;
  refund(id: string): Promise<void>;
};
export declare const parcels: { ship(orderId: number): Promise<void> };
export declare const model: { next(): Promise<{ text: string; done: boolean }> };

export const reservations = pgTable('reservations', {
  orderId: integer('order_id').primaryKey(),
  chargeId: text('charge_id').notNull(),
});

/** Those of a handler. */
export declare const step: Step<typeof db>;
export declare const job: { readonly id: number };

/** A mail provider. */
export declare const mailer: {
  send(to: string | number, options?: { signal?: AbortSignal; idempotencyKey?: string }): Promise<string>;
};

export const queue = createQueue();

export const approval = defineSignal('approval', z.object({ by: z.string(), ok: z.boolean() }));
export const fulfil = defineJob('fulfil', {
  payload: z.object({ orderId: z.number(), cents: z.number() }),
  output: unvalidated<unknown>(),
});

/** The app's own function takes the transaction as an argument. */
export declare function placeOrder(tx: TransactionOf<typeof db>, values: typeof cart): Promise<void>;

export const sendReceipt = defineJob('send-receipt', {
  payload: z.object({ orderId: z.number() }),
  output: z.object({ messageId: z.string() }),
  queue: 'mail',
  maxAttempts: 5,
  timeoutMs: 30_000,
  backoff: exponentialBackoff({ initialMs: 1_000, maxMs: 3_600_000 }),
});

export const remindUser = defineJob('remind-user', { payload: z.object({ userId: z.number() }) });

/** What an error tracker has. */
export declare function report(error: unknown, context: object): void;

/** Handlers that are shown elsewhere. */
export declare const handlers: readonly Handler[];
