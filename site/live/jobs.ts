import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, fixedBackoff } from 'drizzle-queue';

/** The table of the app. */
export const orders = pgTable('orders', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  item: text('item').notNull(),
});

/** In the form that drizzle-kit generates. */
export const CREATE_ORDERS = `CREATE TABLE "orders" (
  "id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  "item" text NOT NULL
);`;

export interface Receipt {
  readonly orderId: number;
  readonly item: string;
}

export const queue = createQueue();

export const sendReceipt = defineJob('send-receipt', {
  payload: isReceipt(),
  maxAttempts: 5,
  backoff: fixedBackoff(3_000),
});

/** A Standard Schema by hand: the page has no other validator. */
function isReceipt() {
  return {
    '~standard': {
      version: 1,
      vendor: 'drizzle-queue-site',
      validate: (value: unknown) =>
        typeof value === 'object' && value !== null && 'orderId' in value && 'item' in value
          ? { value: { orderId: Number(value.orderId), item: String(value.item) } satisfies Receipt }
          : { issues: [{ message: 'an orderId and an item are expected' }] },
    },
  } as const;
}
