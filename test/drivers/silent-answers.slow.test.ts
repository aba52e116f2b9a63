import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as onPostgresJs } from 'drizzle-orm/postgres-js';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { withinTime } from '../../src/core/drivers/within-time.ts';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { tables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();

function onPool(url: string): { db: Database; end: () => Promise<void> } {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on('error', () => undefined);
  return { db: drizzle({ client: pool }), end: () => pool.end() };
}

function onClient(url: string): { db: Database; end: () => Promise<void> } {
  const client = postgres(url, { max: 2 });
  return { db: onPostgresJs({ client }), end: () => client.end({ timeout: 0 }) };
}

test.each([
  ['node-postgres', onPool],
  ['postgres.js', onClient],
])('%s: who shares an answer of a connection that is silent can ask anew', async (_, open) => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const { db, end } = open(proxy.url(database.url));
  onTestFinished(async () => {
    await proxy.close();
    await end();
  });
  const answer = withinTime(db, tables, 1_000, async ({ runner }) => {
    proxy.forget('to the client', 'all');
    await runner.execute(sql`select 1`);
  });
  await expect(answer).rejects.toThrow('The database has not answered for 31 s');
  // On a pool of one connection as well, which has closed the silent one.
  expect(await withinTime(db, tables, 1_000, async () => 'answered')).toBe('answered');
});

test('node-postgres: a connection that comes after an answer was given up goes back to its pool', async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  onTestFinished(() => pool.end());
  const db: Database = drizzle({ client: pool });
  const taken = await pool.connect();
  let asked = 0;
  const look = () => withinTime(db, tables, 1_000, async () => ++asked);
  await expect(look()).rejects.toThrow('The database has not answered for 31 s');
  taken.release();
  expect(await look()).toBe(1);
  expect(pool.idleCount).toBe(1);
});

test('node-postgres: what was given up in a transaction of the app sends nothing into the next one', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const pool = new pg.Pool({ connectionString: proxy.url(database.url), max: 1 });
  const sent: string[] = [];
  const db: Database = drizzle({ client: pool, logger: { logQuery: (query) => sent.push(query) } });
  onTestFinished(async () => {
    await proxy.close();
    await pool.end();
  });
  let settled: unknown = 'not yet';
  const rolledBack = db.transaction(async (tx) => {
    const answer = withinTime(tx, tables, 1_000, async ({ runner }) => {
      proxy.withhold();
      await runner.execute(sql`select 'the first'`);
      settled = await Promise.resolve(runner.execute(sql`select 'left behind'`)).catch(String);
    });
    await expect(answer).rejects.toThrow('The database has not answered for 31 s');
    sent.push('the answers come');
    proxy.letThrough();
    throw new Error('without an answer');
  });
  await expect(rolledBack).rejects.toThrow('without an answer');
  await db.transaction(async (tx) => {
    await tx.transaction(async (savepoint) => {
      await until(() => settled !== 'not yet');
      expect(settled).toContain('has not answered');
      await savepoint.execute(sql`select 'the next'`);
    });
  });
  const after = sent.slice(sent.indexOf('the answers come') + 1);
  expect(after).toEqual([
    'rollback',
    'begin',
    'savepoint sp1',
    "select 'the next'",
    'release savepoint sp1',
    'commit',
  ]);
});

test('postgres.js: what was given up before its connection came is not carried out when it comes', async () => {
  const client = postgres(database.url, { max: 1 });
  onTestFinished(() => client.end({ timeout: 0 }));
  const sent: string[] = [];
  const db: Database = onPostgresJs({ client, logger: { logQuery: (query) => sent.push(query) } });
  const taken = await client.reserve();
  let asked = 0;
  const look = () => withinTime(db, tables, 1_000, async () => ++asked);
  await expect(look()).rejects.toThrow('The database has not answered for 31 s');
  taken.release();
  expect(await look()).toBe(1);
  // Only that of the second.
  expect(sent.filter((query) => query.includes('statement_timeout'))).toHaveLength(1);
});
