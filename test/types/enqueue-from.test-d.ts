import { lt, sql } from 'drizzle-orm';
import { boolean, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { postgresJs as db, nodePostgres } from './databases.ts';

const users = pgTable('users', {
  id: integer('id').primaryKey(),
  name: text('name').notNull(),
  email: text('email'),
  active: boolean('active').notNull(),
  trialEndsAt: timestamp('trial_ends_at').notNull(),
});

const queue = createQueue();
const remind = defineJob('remind', { payload: z.object({ userId: z.number(), name: z.string() }) });
const sync = defineJob('sync');

const select = db
  .select({ userId: users.id, name: users.name })
  .from(users)
  .where(lt(users.trialEndsAt, sql`now()`));

describe('the select', () => {
  test('has rows that are payloads', () => {
    expectTypeOf(queue.enqueueFrom(db, remind, select)).resolves.toEqualTypeOf<{
      enqueued: number;
      duplicates: number;
    }>();
    db.transaction(async (tx) => await queue.enqueueFrom(tx, remind, select));
    queue.enqueueFrom(
      nodePostgres,
      remind,
      nodePostgres.select({ userId: users.id, name: users.name }).from(users),
    );
    queue.enqueueFrom(db, remind, db.selectDistinct({ userId: users.id, name: users.name }).from(users));
    const byExpression = db
      .select({ userId: sql<number>`id`.as('a'), name: sql<string>`'x'`.as('b') })
      .from(users);
    queue.enqueueFrom(db, remind, byExpression);
  });

  test('must have every property of the payload, in its type', () => {
    // @ts-expect-error no name
    queue.enqueueFrom(db, remind, db.select({ userId: users.id }).from(users));
    // @ts-expect-error no userId
    queue.enqueueFrom(db, remind, db.select().from(users));
    // @ts-expect-error userId is a text
    queue.enqueueFrom(db, remind, db.select({ userId: users.name, name: users.name }).from(users));
    // @ts-expect-error name may be null
    queue.enqueueFrom(db, remind, db.select({ userId: users.id, name: users.email }).from(users));
  });

  test('must be a select', () => {
    // @ts-expect-error rows
    queue.enqueueFrom(db, remind, [{ userId: 1, name: 'ada' }]);
    // @ts-expect-error what a select answers
    queue.enqueueFrom(db, remind, Promise.resolve([{ userId: 1, name: 'ada' }]));
    // @ts-expect-error raw SQL
    queue.enqueueFrom(db, remind, sql`select 1`);
    // @ts-expect-error a table
    queue.enqueueFrom(db, remind, users);
  });

  test('may be any where the definition has no payload: one job per row', () => {
    queue.enqueueFrom(db, sync, db.select({ id: users.id }).from(users));
  });

  test('may be any where the payload is unknown', () => {
    const any = defineJob('any', { payload: unvalidated<unknown>() });
    queue.enqueueFrom(db, any, db.select({ id: users.id, at: users.trialEndsAt }).from(users));
  });
});

describe('the options', () => {
  test("have functions that are given the select's fields", () => {
    queue.enqueueFrom(db, remind, select, {
      uniqueKey: (row) => sql`${row.userId}::text || ${row.name}`,
      priority: (row) => sql`case when ${row.name} = 'ada' then 0 else 5 end`,
      runAt: (row) => sql`now() + ${row.userId} * interval '1 second'`,
    });
    queue.enqueueFrom(db, remind, select, { uniqueKey: (row) => row.name });
    // @ts-expect-error not selected
    queue.enqueueFrom(db, remind, select, { uniqueKey: (row) => sql`${row.email}` });
  });

  test('may be plain values where they are the same for all rows', () => {
    queue.enqueueFrom(db, remind, select, {
      delayMs: 5,
      priority: 1,
      maxAttempts: 3,
      queue: 'mail',
      metadata: { a: 1 },
    });
    queue.enqueueFrom(db, remind, select, { runAt: new Date() });
    queue.enqueueFrom(db, remind, select, { runAt: undefined, uniqueKey: undefined });
  });

  test('are checked', () => {
    // @ts-expect-error all jobs would have the same key
    queue.enqueueFrom(db, remind, select, { uniqueKey: 'k' });
    // @ts-expect-error unknown option
    queue.enqueueFrom(db, remind, select, { delay: 5 });
    // @ts-expect-error an expression
    queue.enqueueFrom(db, remind, select, { priority: () => 5 });
    // @ts-expect-error a Date, or an expression
    queue.enqueueFrom(db, remind, select, { runAt: '2030-01-01' });
  });
});
