import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { defineJob } from 'drizzle-queue';
import { from, importJobs } from 'drizzle-queue/import';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { atFaultPoints, type FaultPoint } from '../../src/core/sql/fault-point.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { useRedis, WITHOUT_REDIS } from './redis.ts';
import { openBullmq } from './systems.ts';

const database = useTestDatabase();
const redis = useRedis();
const numbered = defineJob('numbered', { payload: z.object({ n: z.number() }) });
const mapping = { mail: { job: numbered } };
const require = createRequire(new URL('../../bench/package.json', import.meta.url));
/** What the tests use of ioredis. */
interface Client {
  call(...command: (string | number)[]): Promise<unknown>;
  disconnect(): void;
}

beforeEach(() => clearTables(database.client));
afterEach(() => atFaultPoints());

/** A queue of BullMQ with jobs of these numbers, and a client of its server. */
async function open(
  numbers: readonly number[] = [],
  { name = `q${randomBytes(4).toString('hex')}`, db = 0 } = {},
) {
  const redisUrl = `${redis.url}/${db}`;
  const queue = openBullmq({ url: database.url, redisUrl, queue: name });
  const { Redis } = require('ioredis');
  const client: Client = new Redis(redisUrl);
  onTestFinished(async () => {
    client.disconnect();
    await queue.close();
  });
  for (const n of numbers) await queue.add('mail', { n });
  const importAll = (rules: Parameters<typeof importJobs>[2] = mapping, batchSize = 100) =>
    importJobs(database.db, from.bullmq({ queue }), rules, { batchSize });
  return { queue, name, redisUrl, client, importAll, key: (of: string) => queue.toKey(of) };
}

async function numbers(): Promise<number[]> {
  const rows = await database.client`
    select (payload->>'n')::int as n from queue_jobs where run_at <= now() order by 1`;
  return rows.map(({ n }) => Number(n));
}

/** Runs something the first time that an importer comes to a point. */
function once(point: FaultPoint, run: () => Promise<unknown>): void {
  let came = false;
  atFaultPoints(async (at) => {
    if (at !== point || came) return;
    came = true;
    await run();
  });
}

async function die(): Promise<never> {
  throw new Error('dead');
}

describe.skipIf(WITHOUT_REDIS !== undefined)('BullMQ on Redis', () => {
  test('an importer that slept while another one did its jobs and ended writes none of them', async () => {
    const { importAll, client, key } = await open([1, 2, 3]);
    once('import: held', async () => {
      // As after 5 seconds.
      await client.call('DEL', key('meta:drizzle-queue-import-lease'), key('drizzle-queue-import-lease'));
      expect(await importAll()).toMatchObject({ left: 0 });
      expect(await numbers()).toEqual([1, 2, 3]);
    });
    await expect(importAll()).rejects.toThrow(/another importer has these jobs/);
    expect(await numbers()).toEqual([1, 2, 3]);
  });

  test('two Redis servers with a queue of the same name are two', async () => {
    const one = await open([1, 2, 3]);
    const other = await open([4, 5, 6], { name: one.name, db: 1 });
    once('import: written', () => other.importAll());
    await one.importAll();
    expect(await numbers()).toEqual([1, 2, 3, 4, 5, 6]);

    for (const n of [7, 8]) await one.queue.add('mail', { n });
    for (const n of [9, 10]) await other.queue.add('mail', { n });
    once('import: written', die);
    await expect(one.importAll()).rejects.toThrow('dead');
    await other.importAll();
    expect(await numbers()).toEqual([1, 2, 3, 4, 5, 6, 9, 10]);
    await one.importAll();
    expect(await numbers()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test('a job that is no JSON, or whose id Postgres cannot keep, is left, and stops no other', async () => {
    const { queue, importAll, client, key } = await open([1, 2, 3]);
    await client.call('HSET', key('1'), 'data', '{');
    await client.call('HSET', key('2'), 'opts', 'x');
    await queue.add('mail', { n: 4 }, { jobId: 'a\0b' });
    const rules = { mail: { job: numbered, options: () => ({ uniqueKey: undefined }) } };
    const { imported, leftJobs } = await importAll(rules);
    expect(imported).toBe(1);
    expect(leftJobs.map(({ id, why, message }) => [id, why, message])).toEqual([
      ['1', 'unfit', 'Its data or its options are not JSON'],
      ['2', 'unfit', 'Its data or its options are not JSON'],
      ['a\0b', 'unfit', 'Its id must not contain a NUL character (\\u0000), which Postgres cannot keep'],
    ]);
    expect(await client.call('LRANGE', key('wait'), 0, -1)).toEqual(['a\0b', '2', '1']);
  });

  test('what the database refuses is given back at once, in its order', async () => {
    const { importAll, client, key } = await open([1, 2, 3]);
    await database.client`alter table queue_jobs add constraint no_two check (payload->>'n' <> '2')`;
    try {
      await expect(importAll()).rejects.toThrow();
    } finally {
      await database.client`alter table queue_jobs drop constraint no_two`;
    }
    expect(await client.call('LRANGE', key('wait'), 0, -1)).toEqual(['3', '2', '1']);
    expect(await importAll()).toMatchObject({ imported: 3, left: 0 });
    expect(await numbers()).toEqual([1, 2, 3]);
  });

  test('what was held of a paused queue is given back to the list of now', async () => {
    const { queue, importAll, client, key } = await open([1, 2]);
    // As BullMQ 5 pauses.
    await client.call('HSET', key('meta'), 'paused', 1);
    await client.call('RENAME', key('wait'), key('paused'));
    once('import: held', die);
    await expect(importAll()).rejects.toThrow('dead');
    await queue.resume();
    expect(await importAll({ other: { job: numbered } })).toMatchObject({ imported: 0, left: 2 });
    expect(await client.call('LRANGE', key('wait'), 0, -1)).toEqual(['2', '1']);
    // And the other way round.
    once('import: held', die);
    await expect(importAll()).rejects.toThrow('dead');
    await client.call('HSET', key('meta'), 'paused', 1);
    await importAll({ other: { job: numbered } });
    expect(await client.call('LRANGE', key('paused'), 0, -1)).toEqual(['2', '1']);
  });

  test('a job after which another one is to come, by keepLastIfActive, is left', async () => {
    const { queue, name, redisUrl, importAll, client, key } = await open();
    const deduplication = { id: 'only', keepLastIfActive: true };
    await queue.add('mail', { n: 1 }, { deduplication, attempts: 3, backoff: 3_600_000 });
    const { Worker } = require('bullmq');
    const fail = async () => {
      await queue.add('mail', { n: 2 }, { deduplication });
      throw new Error('on purpose');
    };
    const worker = new Worker(name, fail, { connection: { url: redisUrl, maxRetriesPerRequest: null } });
    await until(async () => Number(await client.call('ZCARD', key('delayed'))) === 1);
    await worker.close();
    expect(await importAll()).toMatchObject({
      imported: 0,
      leftJobs: [{ why: 'unfit', message: 'Another job is added when it has ended (keepLastIfActive)' }],
    });
    expect(await client.call('HGET', key('dn:only'), 'data')).toBe('{"n":2}');
  });

  test('jobs behind others that are left are taken in one walk for a batch', async () => {
    const { queue, importAll, client, key } = await open();
    const jobs = (name: string, from: number, count: number) =>
      Array.from({ length: count }, (_, index) => ({ name, data: { n: from + index } }));
    await queue.addBulk([...jobs('other', 0, 1_500), ...jobs('mail', 1_500, 1_500)]);
    await client.call('CONFIG', 'RESETSTAT');
    expect(await importAll(mapping, 500)).toMatchObject({ imported: 1_500, left: 1_500 });
    expect(/cmdstat_lrem:calls=(\d+)/.exec(String(await client.call('INFO', 'commandstats')))?.[1]).toBe('3');
    expect(await numbers()).toEqual(Array.from({ length: 1_500 }, (_, index) => 1_500 + index));
    const left = Array.from({ length: 1_500 }, (_, index) => String(1_500 - index));
    expect(await client.call('LRANGE', key('wait'), 0, -1)).toEqual(left);
    const ids = await database.client`select (payload->>'n')::int as n from queue_jobs order by run_at, id`;
    expect(ids.map(({ n }) => n)).toEqual(await numbers());
  });

  test('jobs that have ended since they were listed are not looked for among all that wait', async () => {
    const { queue, client, importAll, key } = await open(Array.from({ length: 40 }, (_, n) => n));
    const others = Array.from({ length: 5_000 }, (_, n) => ({ name: 'other', data: { n } }));
    await queue.addBulk(others);
    // The first to run is the last.
    const listed = (await client.call('LRANGE', key('wait'), -40, -1)) as string[];
    const ranges = async () => {
      const [, calls] =
        /cmdstat_lrange:calls=(\d+)/.exec(String(await client.call('INFO', 'commandstats'))) ?? [];
      return Number(calls ?? 0);
    };
    // Of the second batch, and of the third.
    once('import: held', async () => {
      await client.call('CONFIG', 'RESETSTAT');
      for (const id of [listed.at(-13) ?? '', listed.at(-26) ?? '']) {
        await client.call('LREM', key('wait'), -1, id);
        await client.call('HSET', key(id), 'finishedOn', Date.now());
        await client.call('ZADD', key('completed'), Date.now(), id);
      }
    });
    expect(await importAll(mapping, 10)).toMatchObject({ imported: 38, left: 5_000 });
    // One for each batch that still follows.
    expect(await ranges()).toBe(3);
  });

  test('connections that break at every step lose and double nothing', async () => {
    const { importAll, client } = await open(Array.from({ length: 30 }, (_, n) => n));
    let broken = 0;
    atFaultPoints(async () => {
      broken += Number(await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'));
    });
    expect(await importAll(mapping, 10)).toMatchObject({ imported: 30, left: 0 });
    expect(broken).toBeGreaterThan(5);
    expect(await numbers()).toEqual(Array.from({ length: 30 }, (_, n) => n));
  });
});
