import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { withReplicas } from 'drizzle-orm/pg-core';
import { drizzle as drizzleProxy } from 'drizzle-orm/pg-proxy';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, type Database, defineJob, drain, handle, runNext } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { describe, expect, onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');
const handlers = [handle(work, () => {})];

const starts = {
  createWorker: async (db: Database) => void createWorker(db, { queue, handlers }),
  drain: async (db: Database) => void (await drain(db, { queue, handlers, deadlineMs: 10_000 })),
};

/** What `check` says about the connection. */
async function saidOf(db: Database): Promise<readonly string[]> {
  const findings = await queue.check(db);
  return findings.flatMap(({ code, fix }) => (code === 'single-connection' ? [fix] : []));
}

async function openClient(): Promise<Database> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  return drizzleNodePostgres({ client });
}

describe.each(Object.entries(starts))('%s refuses', (name, start) => {
  test('a client of node-postgres, and says what to write', async () => {
    const db = await openClient();
    await expect(start(db)).rejects.toThrow(TypeError);
    await expect(start(db)).rejects.toThrow(
      `${name}(db, …): this database is a single client, but a worker needs a connection pool. Its statements ` +
        "would become part of the handlers' transactions, and be rolled back with them. " +
        'Use drizzle({ client: new Pool({ connectionString }) })',
    );
    expect(await saidOf(db)).toEqual([
      'Use a connection pool: drizzle({ client: new Pool({ connectionString }) })',
    ]);
  });

  test('a client that a pool has given out', async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    onTestFinished(() => pool.end());
    const client = await pool.connect();
    onTestFinished(() => client.release());
    await expect(start(drizzleNodePostgres({ client }))).rejects.toThrow('this database is a single client');
  });

  test('a client of a driver that is made after node-postgres', async () => {
    class NeonClient extends pg.Client {}
    await expect(start(drizzleNodePostgres({ client: new NeonClient() }))).rejects.toThrow('a single client');
  });

  test('a transaction and a savepoint', async () => {
    const message = `${name}(db, …) takes a database, but got a transaction`;
    await database.db.transaction(async (tx) => {
      await expect(start(tx)).rejects.toThrow(message);
      await tx.transaction(async (savepoint) => await expect(start(savepoint)).rejects.toThrow(message));
      expect(await saidOf(tx)).toEqual([]);
    });
  });
});

describe('a worker takes', () => {
  test.each<[string, () => Database]>([
    ['a pool of node-postgres', () => drizzleNodePostgres({ client: new pg.Pool() })],
    ['a pool of one', () => drizzleNodePostgres({ client: new pg.Pool({ max: 1 }) })],
    ['postgres.js', () => drizzle({ client: postgres('postgres://nowhere') })],
    [
      'postgres.js with one connection',
      () => drizzle({ client: postgres('postgres://nowhere', { max: 1 }) }),
    ],
    ['a proxy', () => drizzleProxy(async () => ({ rows: [] })) as never],
    ['a database with replicas', () => withReplicas(database.db, [database.db])],
  ])('%s', async (_, open) => {
    await starts.createWorker(open());
  });
});

test('enqueue and runNext take a single client', async () => {
  const db = await openClient();
  const { id } = await queue.enqueue(db, work);
  expect(await runNext(db, { queue, handlers })).toMatchObject({ outcome: 'completed', job: { id } });
});
