import { and, asc, count, eq, isNull, lte, sql } from 'drizzle-orm';
import { createQueue, defineJob } from 'drizzle-queue';
import { queueJobs, queueResults } from 'drizzle-queue/schema';
import { beforeAll, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { useTestDatabase } from '../support/test-database.ts';
import { createShop, customers, orders } from './support/shop-tables.ts';

const queue = createQueue();
const send = defineJob('send', { payload: z.object({ to: z.string() }) });
const database = useTestDatabase();
let ada: number;
let bo: number;
let cy: number;

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
test('business tables are joined with live jobs', async () => {
  const rows = await database.db
    .select({ order: orders.id, customer: customers.name, kind: queueJobs.kind, runAt: queueJobs.runAt })
    .from(orders)
    .innerJoin(customers, eq(customers.id, orders.customerId))
    .leftJoin(queueJobs, eq(queueJobs.id, orders.receiptJobId))
    .orderBy(asc(orders.id));
  expectTypeOf(rows).toEqualTypeOf<
    { order: number; customer: string; kind: string | null; runAt: Date | null }[]
  >();
  expect(rows).toEqual([
    { order: 1, customer: 'Ada', kind: 'send', runAt: expect.any(Date) },
    { order: 2, customer: 'Bo', kind: 'send', runAt: expect.any(Date) },
    { order: 3, customer: 'Bo', kind: null, runAt: null },
  ]);
});

test('jobs are counted by what they are and whether they are due', async () => {
  const rows = await database.db
    .select({ kind: queueJobs.kind, due: count() })
    .from(queueJobs)
    .where(and(isNull(queueJobs.workerId), lte(queueJobs.runAt, sql`now()`)))
    .groupBy(queueJobs.kind);
  expect(rows).toEqual([{ kind: 'send', due: 1 }]);
});

test('results are told by their state, which is text', async () => {
  const [row] = await database.db
    .select({ state: queueResults.state, to: sql<string>`${queueResults.payload} ->> 'to'` })
    .from(queueResults)
    .where(eq(queueResults.state, 'cancelled'));
  expectTypeOf(row?.state).toEqualTypeOf<'completed' | 'discarded' | 'cancelled' | undefined>();
  expect(row).toEqual({ state: 'cancelled', to: 'cy' });
});

test('what Drizzle Studio reads is readable: every table has a primary key, and every column a plain type', async () => {
  const types = await database.client<{ type: string }[]>`
    select distinct format_type(atttypid, atttypmod) as type from pg_attribute
    where attrelid in (select oid from pg_class where relname like 'queue\\_%' and relkind in ('r', 'p')) and attnum > 0`;
  expect(types.map(({ type }) => type).sort()).toEqual([
    'bigint',
    'integer',
    'jsonb',
    'smallint',
    'text',
    'timestamp with time zone',
  ]);
  const without = await database.client`
    select relname from pg_class as c where relname like 'queue\\_%' and relkind in ('r', 'p')
      and not exists (select from pg_index where indrelid = c.oid and indisprimary)`;
  expect(without).toEqual([]);
});
