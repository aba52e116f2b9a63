import { sql } from 'drizzle-orm';
import { createQueue, type Executor } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { expect, test } from 'vitest';
import { Looks, within } from '../../src/dashboard/looks.ts';
import type { Database } from '../../src/sql/executor.ts';
import { addJob } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, get, page } from './support/visits.ts';

const database = useTestDatabase();

/** The same database, which counts the transactions that looks begin. */
function counted(): { db: Database; readonly transactions: number } {
  let transactions = 0;
  const db = new Proxy(database.db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        if (name === 'transaction') transactions++;
        return Reflect.apply(value, target, given);
      };
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

test('every page is there with one connection', async () => {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('one was opened');
  const dashboard = createDashboard({ db: connection.db, queue: createQueue(), authorize: () => 'write' });
  const paths = [
    '/',
    '/jobs',
    '/errors',
    '/queues',
    '/workers',
    '/database',
    '/jobs/many?action=cancel&of=all&q=',
  ];
  const pages = await Promise.all(paths.map((path) => get(dashboard, path)));
  expect(pages.map(({ status }) => status)).toEqual(paths.map(() => 200));
});

test('a look that takes too long is ended, rests, and leaves its connection as it was', async () => {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('one was opened');
  const { db } = connection;
  let asked = 0;
  const slow = async (tx: Executor) => {
    asked++;
    await tx.execute(sql`select pg_sleep(30)`);
  };
  const looks = new Looks(db, createQueue().tables);
  expect(await looks.at('slow', 50, slow)).toBeUndefined();
  expect(await looks.at('slow', 50, slow)).toBeUndefined();
  expect(asked).toBe(1);
  const [row] = await db.execute<{ statement_timeout: string }>(sql`show statement_timeout`);
  expect(row?.statement_timeout).toBe('0');
});

test('what somebody has just changed is looked at anew, and a look from before is not what they get', async () => {
  const looks = new Looks(another(database.db), createQueue().tables);
  let value = 1;
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const before = looks.at('x', 10_000, async () => {
    const seen = value;
    begin();
    await gate;
    return seen;
  });
  await begun;
  value = 2;
  looks.forget();
  const after = looks.at('x', 1_000, () => Promise.resolve(value));
  release();
  expect(await Promise.all([before, after])).toEqual([1, 2]);
  expect(await looks.at('x', 1_000, () => Promise.resolve(3))).toBe(2);
});

test('an error other than the timeout is thrown, and not kept', async () => {
  const looks = new Looks(another(database.db), createQueue().tables);
  const broken = (tx: Executor) => Promise.resolve(tx.execute(sql`select 1 / 0`));
  await expect(looks.at('x', 1_000, broken)).rejects.toThrow();
  expect(await looks.at('x', 1_000, () => Promise.resolve(7))).toBe(7);
  await expect(within(database.db, createQueue().tables, 1_000, broken)).rejects.toThrow();
});
