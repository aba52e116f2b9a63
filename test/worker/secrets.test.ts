import { inspect } from 'node:util';
import { sql } from 'drizzle-orm';
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  fixedBackoff,
  handle,
  MissingMigrationError,
  unvalidated,
} from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { untouched } from '../queue/support/executors.ts';
import { citusCluster } from '../support/citus.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from './next-event.ts';

const SECRET = 's3cr3t';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<unknown>(), maxAttempts: 1, backoff: fixedBackoff(0) });

/** What is printed. */
let printed: string[] = [];

beforeEach(async () => {
  await clearTables(database.client);
  printed = [];
  for (const method of ['error', 'warn', 'log', 'info', 'debug'] as const) {
    vi.spyOn(console, method).mockImplementation((...given) => {
      printed.push(given.map((value) => inspect(value, { depth: null, showHidden: true })).join(' '));
    });
  }
});
afterEach(() => {
  vi.restoreAllMocks();
  expect(printed.join('\n')).not.toContain(SECRET);
});

/** The database's URL with a password, which a server that trusts whoever connects does not ask for. */
function urlWithPassword(): string {
  const url = new URL(database.url);
  if (url.password === '') url.password = SECRET;
  return url.href;
}

const drivers: Readonly<Record<string, () => { db: Database; close(): Promise<unknown> }>> = {
  'postgres.js': () => {
    // With `fetch_types` a connection that breaks while it opens is a rejection that postgres.js itself leaves unhandled.
    const client = postgres(urlWithPassword(), { max: 5, fetch_types: false, onnotice: () => {} });
    return { db: drizzlePostgresJs({ client }), close: () => client.end({ timeout: 1 }) };
  },
  'node-postgres': () => {
    const client = new pg.Pool({ connectionString: urlWithPassword(), max: 5 });
    client.on('error', () => {});
    return { db: drizzleNodePostgres({ client }), close: () => client.end() };
  },
};

describe.each(Object.entries(drivers))('%s', (_, open) => {
  test('a job’s errors hold no parameters of the handler’s failed query', async () => {
    const { db, close } = open();
    const { id } = await queue.enqueue(db, work, 1);
    const worker = createWorker(db, {
      queue,
      handlers: [
        handle(work, async ({ db }) => {
          await db.execute(sql`select ${SECRET}::text from nowhere`);
        }),
      ],
    });
    const discarded = nextEvent(worker, 'discarded');
    await worker.start();
    await discarded;
    await worker.stop();
    const record = await queue.find(db, id);
    expect(record?.errors[0]?.message).toContain('"nowhere" does not exist');
    expect(JSON.stringify(record)).not.toContain(SECRET);
    await close();
  });

  test('an output that cannot be written is in no error, told, stored or printed', async () => {
    const { db, close } = open();
    await database.client`alter table queue_results add constraint small check (length(output::text) < 100)`;
    const { id } = await queue.enqueue(db, work, 1);
    const worker = createWorker(db, { queue, handlers: [handle(work, () => SECRET.repeat(100))] });
    const failed = nextEvent(worker, 'failed');
    await worker.start();
    const [{ error }] = await failed;
    await worker.stop();
    await database.client`alter table queue_results drop constraint small`;
    // A cluster names that of the shard.
    const violated =
      citusCluster() === undefined
        ? /violates check constraint "small"/
        : /violates check constraint "small_\d+"/;
    expect(String(error)).toMatch(violated);
    expect(String(error)).not.toContain(SECRET);
    const record = await queue.find(db, id);
    expect(record?.errors[0]?.message).toMatch(violated);
    expect(JSON.stringify(record?.errors)).not.toContain(SECRET);
    await close();
  });

  test.each([
    ['with', true],
    ['without', false],
  ])('a worker’s own failed statements, %s a listener', async (_, heard) => {
    const { db, close } = open();
    const worker = createWorker(db, { queue, handlers: [handle(work, () => SECRET)] });
    const errors: unknown[] = [];
    if (heard)
      worker.on('error', ({ error, during }) => errors.push(`${during}: ${inspect(error, { depth: null })}`));
    await worker.start();
    await database.client`alter table queue_results rename to elsewhere`;
    await queue.enqueue(db, work, SECRET);
    const told = () => (heard ? errors.join('\n') : printed.join('\n'));
    await until(() => told().includes('settling'));
    await database.client`alter table elsewhere rename to queue_results`;
    await worker.stop();
    expect(told()).toContain('queue_results');
    expect(told()).not.toContain(SECRET);
    await close();
  });

  test('connections that are lost and refused', async () => {
    const { db, close } = open();
    const worker = createWorker(db, { queue, handlers: [handle(work, () => {})], pollIntervalMs: 5 });
    await worker.start();
    await queue.enqueue(db, work, SECRET);
    const own = new URL(database.url).pathname.slice(1);
    // Nobody can close the database that he is connected to.
    const outside = postgres(inject('testServer').url, { max: 1, onnotice: () => {} });
    await outside.unsafe(`alter database "${own}" allow_connections false`);
    await outside`
      select pg_terminate_backend(pid) from pg_stat_activity where datname = ${own}`;
    await until(() => printed.length > 0);
    await outside.unsafe(`alter database "${own}" allow_connections true`);
    await outside.end();
    await worker.stop();
    await close();
  });
});

test('a payload is in no message of ours that refuses it', async () => {
  const payloads = [
    { a: SECRET, b: Number.NaN },
    { a: `${SECRET}\0` },
    [SECRET, undefined],
    { a: new Map([[SECRET, SECRET]]) },
    { a: 1n, b: SECRET },
    SECRET.repeat(1_000_000),
  ];
  for (const payload of payloads) {
    const error = await queue.enqueue(untouched(), work, payload).catch((error: unknown) => error);
    expect(error).toMatchObject({ name: 'InvalidPayloadError' });
    expect(inspect(error, { depth: null })).not.toContain(SECRET);
  }
});

test('nor in the error of a missing migration, which has the driver’s error for a cause', async () => {
  const error = await database.db
    .transaction(async (tx) => {
      await tx.execute(sql`drop table queue_jobs`);
      await queue.enqueue(tx, work, SECRET);
    })
    .catch((error: unknown) => error);
  expect(error).toBeInstanceOf(MissingMigrationError);
  expect(inspect(error, { depth: null })).not.toContain(SECRET);
});

test('a worker that cannot connect says where to, and not with which password', async () => {
  const client = postgres(`postgres://someone:${SECRET}@127.0.0.1:1/none`, { connect_timeout: 2 });
  const worker = createWorker(drizzlePostgresJs({ client }), { queue, handlers: [handle(work, () => {})] });
  const error = await worker.start().catch((error: unknown) => error);
  expect(inspect(error, { depth: null })).toContain('ECONNREFUSED');
  expect(inspect(error, { depth: null })).not.toContain(SECRET);
  await client.end();
});
