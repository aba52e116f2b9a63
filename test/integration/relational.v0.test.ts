import { asc, eq, relations } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob } from 'drizzle-queue';
import { type AttemptError, queueJobs, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { createInsertSchema, createSelectSchema } from 'drizzle-zod';
import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { ownTables } from '../queue/support/own-columns.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { createShop, customers, orders } from './support/shop-tables.ts';

/** The relations of drizzle-orm 0.45, as an app declares them beside its own. */
const schema = {
  queueJobs,
  queueResults,
  queueWorkers,
  customers,
  orders,
  ordersRelations: relations(orders, ({ one }) => ({
    customer: one(customers, { fields: [orders.customerId], references: [customers.id] }),
    receiptJob: one(queueJobs, { fields: [orders.receiptJobId], references: [queueJobs.id] }),
    receiptResult: one(queueResults, { fields: [orders.receiptJobId], references: [queueResults.jobId] }),
  })),
};

const queue = createQueue();
const send = defineJob('send', { payload: z.object({ to: z.string() }) });
const database = useTestDatabase();
let ada: number;
let bo: number;
let cy: number;

const relational = () => drizzle({ client: database.client, schema });

beforeAll(async () => {
  for (const statement of createShop) await database.client.unsafe(statement);
  const { db } = database;
  const many = await queue.enqueueMany(db, send, [
    { payload: { to: 'ada' } },
    { payload: { to: 'bo' }, delayMs: 60_000, priority: 1 },
    { payload: { to: 'cy' } },
  ]);
  [ada, bo, cy] = many.map(({ id }) => id) as [number, number, number];
  await db.insert(customers).values([
    { id: 1, name: 'Ada' },
    { id: 2, name: 'Bo' },
  ]);
  await db.insert(orders).values([
    { id: 1, customerId: 1, receiptJobId: ada },
    { id: 2, customerId: 2, receiptJobId: bo },
    { id: 3, customerId: 2, receiptJobId: null },
  ]);
  await queue.cancel(db, cy, 'no more');
});
describe('relational queries of drizzle-orm 0.45', () => {
  test('find jobs and results', async () => {
    const db = relational();
    const jobs = await db.query.queueJobs.findMany({
      where: eq(queueJobs.kind, 'send'),
      orderBy: [asc(queueJobs.priority)],
      columns: { id: true, payload: true, runAt: true },
    });
    expectTypeOf(jobs).toEqualTypeOf<{ id: number; payload: unknown; runAt: Date }[]>();
    expect(jobs.map(({ id, payload }) => [id, payload])).toEqual([
      [bo, { to: 'bo' }],
      [ada, { to: 'ada' }],
    ]);
    expect(jobs[0]?.runAt).toBeInstanceOf(Date);
    const result = await db.query.queueResults.findFirst({ where: eq(queueResults.jobId, cy) });
    expectTypeOf(result?.errors).toEqualTypeOf<AttemptError[] | undefined>();
    expect(result).toMatchObject({ state: 'cancelled', errors: [{ message: 'no more' }] });
    expect(await db.query.queueWorkers.findMany()).toEqual([]);
  });

  test('find jobs through business tables', async () => {
    const rows = await relational().query.orders.findMany({
      columns: { id: true },
      with: { customer: true, receiptJob: { columns: { kind: true, attempt: true } }, receiptResult: true },
      orderBy: [asc(orders.id)],
    });
    expectTypeOf(rows[0]?.receiptJob).toEqualTypeOf<{ kind: string; attempt: number } | null | undefined>();
    expect(rows).toEqual([
      {
        id: 1,
        customer: { id: 1, name: 'Ada' },
        receiptJob: { kind: 'send', attempt: 0 },
        receiptResult: null,
      },
      {
        id: 2,
        customer: { id: 2, name: 'Bo' },
        receiptJob: { kind: 'send', attempt: 0 },
        receiptResult: null,
      },
      { id: 3, customer: { id: 2, name: 'Bo' }, receiptJob: null, receiptResult: null },
    ]);
  });
});

describe('drizzle-zod', () => {
  test('makes schemas of the tables, own columns included', async () => {
    const schema = createSelectSchema(queueJobs);
    const rows = await database.db.select().from(queueJobs);
    expect(rows).toHaveLength(2);
    for (const row of rows) expect(schema.parse(row)).toEqual(row);
    expect(() => schema.parse({ ...rows[0], runAt: 'soon' })).toThrow();
    const results = createSelectSchema(queueResults).parse(
      (await database.db.select().from(queueResults))[0],
    );
    expectTypeOf(results.finishedAt).toEqualTypeOf<Date>();
    const insert = createInsertSchema(ownTables.queueJobs);
    expectTypeOf<z.infer<typeof insert>['tenantId']>().toEqualTypeOf<string>();
    expect(() => insert.parse({ queue: 'q', kind: 'k', payload: {}, maxAttempts: 1 })).toThrow('tenantId');
  });
});
