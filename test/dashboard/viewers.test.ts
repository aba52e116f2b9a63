import { sql } from 'drizzle-orm';
import { createQueue, type Executor } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { expect, test } from 'vitest';
import { SharedLooks, within } from '../../src/dashboard/shared-looks.ts';
import { addJob } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { get, page } from './support/visits.ts';

const database = useTestDatabase();

/** The same database, which counts the transactions that looks begin. */
function counted(): { db: Executor; readonly transactions: number } {
  let transactions = 0;
  const db = new Proxy(database.db, {
    get(target, name) {
      if (name === 'transaction') transactions++;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return {
    db,
    get transactions() {
      return transactions;
    },
  };
}

test('a hundred viewers at once cost as much as one', async () => {
  await addJob(database.client);
  const one = counted();
  const options = { queue: createQueue(), authorize: () => 'read' as const };
  await page(createDashboard({ ...options, db: one.db }), '/');
  const many = counted();
  const dashboard = createDashboard({ ...options, db: many.db });
  const pages = await Promise.all(Array.from({ length: 100 }, () => get(dashboard, '/')));
  expect(pages.map(({ status }) => status)).toEqual(Array(100).fill(200));
  expect(many.transactions).toBe(one.transactions);
});

test('a look that takes too long is ended, and its connection is as it was', async () => {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('one was opened');
  const { db } = connection;
  const slow = (tx: Executor) => Promise.resolve(tx.execute(sql`select pg_sleep(30)`));
  const looks = new SharedLooks(db, createQueue().tables);
  const look = await looks.at('slow', 50, slow);
  expect(look.value).toBeUndefined();
  expect(look.tookMs).toBeLessThan(20_000);
  // The next one waits: a hundred times what this one took.
  expect((await looks.at('slow', 50, slow)).at).toBe(look.at);
  const [row] = await db.execute<{ statement_timeout: string }>(sql`show statement_timeout`);
  expect(row?.statement_timeout).toBe('0');
});

test('an error other than the timeout is thrown, and not kept', async () => {
  const looks = new SharedLooks(database.db, createQueue().tables);
  const broken = (tx: Executor) => Promise.resolve(tx.execute(sql`select 1 / 0`));
  await expect(looks.at('x', 1_000, broken)).rejects.toThrow();
  expect((await looks.at('x', 1_000, () => Promise.resolve(7))).value).toBe(7);
  await expect(within(database.db, createQueue().tables, 1_000, broken)).rejects.toThrow();
});
