import { drizzle as drizzleNode } from 'drizzle-orm/node-postgres';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, type Database, defineJob, drain, handle, runNext } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import pg from 'pg';
import postgres from 'postgres';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { cancelJobs } from '../../src/core/queries/operate/cancel-jobs.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');

function postgresJs(options: postgres.Options<Record<string, postgres.PostgresType>>): Database {
  const client = postgres(database.url, { ...options, max: 2, onnotice: () => undefined });
  onTestFinished(() => client.end());
  return drizzle({ client });
}

function nodePostgres(types: pg.CustomTypesConfig): Database {
  const pool = new pg.Pool({ connectionString: database.url, max: 2, types });
  onTestFinished(() => pool.end());
  return drizzleNode({ client: pool });
}

const asText = { to: 3802, from: [3802], serialize: String, parse: (text: unknown) => text };
const boolAsText = { to: 16, from: [16], serialize: String, parse: (text: unknown) => text };
const renamed = 'The driver renames columns, so drizzle-queue cannot read its jobs';
const unparsed = 'The driver does not parse jsonb, so drizzle-queue cannot read its jobs';

const unread = 'The driver does not parse booleans, so drizzle-queue cannot read its jobs';

const clients: readonly [string, string, () => Database][] = [
  ['columns in camel case', renamed, () => postgresJs({ transform: postgres.camel })],
  ['jsonb as text', unparsed, () => postgresJs({ types: { jsonb: asText } })],
  ['booleans as text', unread, () => postgresJs({ types: { bool: boolAsText } })],
];

afterEach(async () => {
  expect(await database.db.select().from(queueJobs)).toMatchObject([
    { attempt: 0, workerId: null, errors: [] },
  ]);
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

async function enqueued(): Promise<number> {
  return (await queue.enqueue(database.db, work)).id;
}

describe.each(clients)('a client of postgres.js that hands out %s', (_, message, open) => {
  test('is refused by workers, drain and runNext, which leave the job as it is', async () => {
    const db = open();
    const options = { queue, handlers: [handle(work, () => undefined)] };
    const id = await enqueued();
    await expect(createWorker(db, options).start()).rejects.toThrow(message);
    await expect(drain(db, { ...options, deadlineMs: 10_000 })).rejects.toThrow(message);
    await expect(runNext(db, options)).rejects.toThrow(message);
    await expect(runNext(db, { ...options, id })).rejects.toThrow(message);
  });

  test('still enqueues, finds, waits, reschedules and cancels', async () => {
    const db = open();
    const { id } = await queue.enqueue(db, work, undefined, { delayMs: 3_600_000 });
    expect(await queue.find(db, id)).toMatchObject({ id, state: 'scheduled', attempt: 0 });
    expect(await queue.runNow(db, id)).toEqual({ due: true });
    expect(await queue.list(db)).toMatchObject({ jobs: [{ id, state: 'due' }] });
    const cancelled = await db.transaction((tx) => queue.cancel(tx, id));
    expect(cancelled).toEqual({ cancelled: true });
    const batch = { queue: 'default', ids: [await enqueued()], filter: { own: [] } };
    const reason = { name: 'Cancelled', message: 'no', at: new Date().toISOString() };
    expect(await cancelJobs(db, queue.tables, { ...batch, reason })).toEqual(batch.ids);
    const awaited = await enqueued();
    await drain(database.db, { queue, handlers: [handle(work, () => 7)], deadlineMs: 10_000 });
    const ended = await queue.waitFor(db, work, awaited, { timeoutMs: 10_000 });
    expect(ended).toMatchObject({ id: awaited, state: 'completed' });
    expect(Number(Reflect.get(ended, 'output'))).toBe(7);
    await enqueued();
  });
});

test('a client that renames the keys of jsonb alone is refused where jobs are run', async () => {
  const message = 'The driver renames the keys of jsonb, so drizzle-queue cannot read its jobs';
  const db = postgresJs({ transform: { value: postgres.toCamel.value } });
  const options = { queue, handlers: [handle(work, () => undefined)] };
  await enqueued();
  await expect(createWorker(db, options).start()).rejects.toThrow(message);
  await expect(runNext(db, options)).rejects.toThrow(message);
});

test('a client that hands out undefined for null is refused where jobs are run', async () => {
  const message = 'The driver changes null, so drizzle-queue cannot read its jobs';
  const from = (value: unknown) => (value === null ? undefined : value);
  const db = postgresJs({ transform: { value: { from } } });
  const options = { queue, handlers: [handle(work, () => undefined)] };
  await enqueued();
  await expect(createWorker(db, options).start()).rejects.toThrow(message);
  await expect(runNext(db, options)).rejects.toThrow(message);
});

test('a pool of node-postgres whose connections read everything as text is refused by workers', async () => {
  const db = nodePostgres({ getTypeParser: () => (text: string | Buffer) => text });
  await enqueued();
  const worker = createWorker(db, { queue, handlers: [handle(work, () => undefined)] });
  await expect(worker.start()).rejects.toThrow(unparsed);
});

test('a client of node-postgres that hands out booleans as numbers is refused where jobs are run', async () => {
  const [BOOL, before] = [16, pg.types.getTypeParser(16)];
  // Drizzle reads by the parsers of the process, and workers by those of the pool, which are these as well.
  pg.types.setTypeParser(BOOL, (text) => (text === 't' ? 1 : 0));
  onTestFinished(() => pg.types.setTypeParser(BOOL, before));
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });
  onTestFinished(() => pool.end());
  const db = drizzleNode({ client: pool });
  const options = { queue, handlers: [handle(work, () => undefined)] };
  await enqueued();
  await expect(createWorker(db, options).start()).rejects.toThrow(unread);
  await expect(drain(db, { ...options, deadlineMs: 10_000 })).rejects.toThrow(unread);
  await expect(runNext(db, options)).rejects.toThrow(unread);
});
