import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedJob } from '../../../src/core/queries/claim/claim-jobs.ts';
import { ClaimSize } from '../../../src/core/worker/claim/claim-size.ts';
import { ClaimTries } from '../../../src/core/worker/claim/claim-tries.ts';
import { claim, clearTables, tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables });
const work = defineJob('k', { queue: 'q', payload: unvalidated<unknown>() });
const MB = 1024 * 1024;

beforeEach(() => clearTables(database.client));
afterEach(async () => {
  await database.client`delete from queue_jobs`;
});

/** JSON of so many bytes; `compresses` to about a fifteenth. */
async function addLarge(count: number, bytes: number, compresses = true): Promise<void> {
  const text = compresses
    ? `repeat('{"sku": "A-1", "amount": 12, "price": 99.9}', ${Math.ceil(bytes / 43)})`
    : `(select string_agg(md5(n::text || m), '') from generate_series(1, ${Math.ceil(bytes / 32)}) as m)`;
  await database.client.unsafe(`
    insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
    select 'q', 'k', jsonb_build_object('text', ${text}), 20, now() - interval '1 minute' + n * interval '1 ms'
    from generate_series(1, ${count}) as n`);
}

describe('a claim', () => {
  test('stops at 8 MB of payloads as they really are, however far Postgres has compressed them', async () => {
    await addLarge(40, 740_000);
    const [stored] = await database.client<{ bytes: string }[]>`
      select max(pg_column_size(payload)) as bytes from queue_jobs`;
    expect(Number(stored?.bytes)).toBeLessThan(740_000 / 15);
    const jobs = await claim(database.db, { limit: 40 });
    // The one that takes it above 8 MB is the last.
    expect(jobs).toHaveLength(Math.ceil((8 * MB) / 740_000));
    for (const { payload, payloadBytes } of jobs) {
      expect(payloadBytes / JSON.stringify(payload).length).toBeGreaterThan(0.8);
      expect(payloadBytes / JSON.stringify(payload).length).toBeLessThan(1.2);
    }
  });

  test.each([
    ['null', 'null'],
    ['a text', '"a"'],
    ['a number', '1'],
    ['an array', '[1, 2]'],
    ['an object', '{"a": 1}'],
    ['a long text', JSON.stringify('a'.repeat(100_000))],
    ['a long array', JSON.stringify(Array.from({ length: 20_000 }, () => 1))],
  ])('knows the size of %s', async (_, json) => {
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts) values ('q', 'k', ${json}::text::jsonb, 1)`;
    const [job] = await claim(database.db);
    const [row] = await database.client<{ bytes: number }[]>`
      select pg_column_size(${json}::text::jsonb) as bytes`;
    expect(JSON.stringify(job?.payload)).toBe(JSON.stringify(JSON.parse(json)));
    // What is stored has a header of one byte or four.
    expect(Math.abs((job?.payloadBytes ?? 0) - Number(row?.bytes))).toBeLessThanOrEqual(3);
  });
});

describe('a claim that is too large for its server', () => {
  test('is made smaller until the server allows it: with temp_file_limit all are done', async () => {
    await addLarge(3_000, 1_500, false);
    await database.client.unsafe(`
      alter database "${database.name}" set temp_file_limit = '1MB';
      alter database "${database.name}" set work_mem = '64kB'`);
    const [limited] = await database.connect(10);
    const worker = createWorker(limited?.db ?? database.db, {
      queue,
      handlers: [handle(work, () => undefined)],
      queues: { q: { concurrency: 3_000 } },
    });
    const during: string[] = [];
    let completed = 0;
    worker.on('error', (told) => during.push(told.during));
    worker.on('completed', () => completed++);
    await worker.start();
    await until(() => completed === 3_000);
    await worker.stop();
    expect(during[0]).toBe(`claiming 3000 jobs from 'q'; it now claims 1500 at once`);
  });

  test.each([
    ['a statement that was cancelled', '57014', 'at once'],
    ['memory that the server lacks', '53200', 'at once'],
    ['a limit of its configuration', '53400', 'at once'],
    ['a bound of the server', '54000', 'at once'],
    ['a full disk', '53100', 'with the next claim'],
    ['an answer that is too large for a string', 'ERR_STRING_TOO_LONG', 'with the next claim'],
    [
      'an answer that is too large for an array',
      new RangeError('Invalid array length'),
      'with the next claim',
    ],
    ['a lost connection', 'ECONNRESET', 'not at all'],
    ['too many connections', '53300', 'not at all'],
    ['a refused row', '23514', 'not at all'],
  ] as const)('%s (%s) makes it smaller %s', async (_, cause, when) => {
    const error = typeof cause === 'string' ? Object.assign(new Error('no'), { code: cause }) : cause;
    const holder = { db: database.db, tables, queue: 'q', workerId: 1, mayPark: true };
    const tries = new ClaimTries({ ...holder, events: { emit: () => undefined } });
    const limits: number[] = [];
    const send = async (limit: number) => {
      limits.push(limit);
      if (limits.length === 1) throw new Error('Failed query', { cause: error });
      return { jobs: [] };
    };
    // A row that refuses is looked for in smaller claims too, down to this one, but that is no matter of size.
    const first = { limit: cause === '23514' ? 4 : 1_000, send, candidates: async () => [] };
    if (when === 'at once') await tries.send(first);
    else await expect(tries.send(first)).rejects.toThrow('Failed query');
    if (when !== 'at once') await tries.send(first);
    expect(limits).toEqual([first.limit, when === 'not at all' ? first.limit : first.limit / 2]);
  });

  test('grows again slowly, and not up to the size that has failed', () => {
    const size = new ClaimSize();
    const jobs: ClaimedJob[] = [];
    expect(size.of(1_000)).toBe(1_000);
    expect(size.shrink(1_000, 0)).toBe(true);
    expect(size.of(1_000)).toBe(500);
    for (let claims = 0; claims < 10; claims++) size.note(size.of(1_000), jobs, 1_000);
    expect(size.of(1_000)).toBe(750);
    // One that asked for less says nothing.
    size.note(10, jobs, 120_000);
    expect(size.of(1_000)).toBe(750);
    for (let claims = 0; claims < 10; claims++) size.note(size.of(1_000), jobs, 120_000);
    expect(size.of(1_000)).toBe(1_000);
    expect(size.shrink(1, 0)).toBe(false);
    expect(size.of(1_000)).toBe(1);
  });

  test('asks for few where payloads have been large lately', () => {
    const size = new ClaimSize();
    const large = { payloadBytes: MB } as ClaimedJob; // All that it reads of a job.
    size.note(10, [large], 0);
    expect(size.of(1_000)).toBe(16);
    size.note(
      10,
      Array.from({ length: 100 }, () => ({ payloadBytes: 100 }) as ClaimedJob),
      0,
    );
    expect(size.of(1_000)).toBe(1_000);
  });
});
