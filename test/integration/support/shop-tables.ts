import { bigint, integer, pgTable, text } from 'drizzle-orm/pg-core';

/** Business tables that refer to jobs: by id, without a foreign key. */
export const customers = pgTable('customers', {
  id: integer('id').primaryKey(),
  name: text('name').notNull(),
});

export const orders = pgTable('orders', {
  id: integer('id').primaryKey(),
  customerId: integer('customer_id').notNull(),
  receiptJobId: bigint('receipt_job_id', { mode: 'number' }),
});

export const createShop = [
  'create table customers (id int primary key, name text not null)',
  'create table orders (id int primary key, customer_id int not null, receipt_job_id bigint)',
];
