import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQueue, drain, handleBatch } from 'drizzle-queue';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { single, written } from '../fixtures/batch-jobs.ts';
import { startWorkerProcess } from '../worker-process.ts';

const database = useTestDatabase();
const queue = createQueue();

beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers`;
});

/** Where the batches of worker processes leave their numbers, one line for each batch. */
async function openLedger() {
  const directory = await mkdtemp(join(tmpdir(), 'batch-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const LEDGER = join(directory, 'began');
  return {
    LEDGER,
    async batches(): Promise<number[][]> {
      const text = await readFile(LEDGER, 'utf8').catch(() => '');
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.split(' ').map(Number));
    },
  };
}

const start = (env: Record<string, string>) =>
  startWorkerProcess('worker/fixtures/batch-worker.ts', {
    DATABASE_URL: database.url,
    MAX_WAIT_MS: '20',
    ...env,
  });
const attempts = async () =>
  (await database.client<{ attempt: number }[]>`select attempt from queue_jobs order by id`).map(
    ({ attempt }) => attempt,
  );
const numbered = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ payload: { n, deadly: false } }));

test('a kill in the middle of a batch spends an attempt of each of its jobs', {
  timeout: 240_000,
}, async () => {
  await queue.enqueueMany(database.db, written, numbered(5));
  const ledger = await openLedger();
  const worker = start({ LEDGER: ledger.LEDGER, HANG: '1' });
  await until(async () => (await ledger.batches()).flat().length === 5);
  expect(await worker.end('SIGKILL')).toBe('SIGKILL');
  expect(await attempts()).toEqual([1, 1, 1, 1, 1]);
  // As if it had been gone for long enough, so that the next worker need not wait.
  await database.client`delete from queue_workers`;
  const seen: number[] = [];
  const handler = handleBatch(written, {}, (jobs) => {
    seen.push(...jobs.map(({ job }) => job.attempt));
  });
  const drained = await drain(database.db, { queue, handlers: [handler], deadlineMs: 30_000 });
  expect(drained).toMatchObject({ completed: 5, discarded: 0 });
  expect(seen).toEqual([2, 2, 2, 2, 2]);
});

test('a kill while a batch gathers spends no last attempt', { timeout: 240_000 }, async () => {
  await queue.enqueueMany(
    database.db,
    single,
    Array.from({ length: 5 }, (_, n) => ({ payload: { n } })),
  );
  const ledger = await openLedger();
  const worker = start({ LEDGER: ledger.LEDGER, MAX_WAIT_MS: '60000' });
  await worker.printed('has claimed 5');
  expect(await worker.end('SIGKILL')).toBe('SIGKILL');
  await database.client`delete from queue_workers`;
  const seen: number[] = [];
  const handler = handleBatch(single, {}, (jobs) => {
    seen.push(...jobs.map(({ payload }) => payload.n));
  });
  const drained = await drain(database.db, { queue, handlers: [handler], deadlineMs: 30_000 });
  expect(drained).toMatchObject({ completed: 5, discarded: 0 });
  expect(seen.sort()).toEqual([0, 1, 2, 3, 4]);
  expect(await ledger.batches()).toEqual([]);
});

test('a job that kills its batch each time is found, and takes few with it', {
  timeout: 120_000,
}, async () => {
  const HARMLESS = 150;
  const [{ id: deadly } = { id: 0 }] = await queue.enqueueMany(database.db, written, [
    { payload: { n: -1, deadly: true }, runAt: new Date(Date.now() - 50_000) },
  ]);
  await queue.enqueueMany(
    database.db,
    written,
    numbered(HARMLESS).map((entry, n) => ({ ...entry, runAt: new Date(Date.now() - 90_000 + n * 500) })),
  );
  const ledger = await openLedger();
  let crashes = 0;
  for (; crashes < 6; crashes++) {
    const { child } = start({ LEDGER: ledger.LEDGER, DRAIN: '1' });
    const [code, signal] = await once(child, 'exit');
    await database.client`delete from queue_workers`;
    if (signal === 'SIGKILL') continue;
    expect(code).toBe(0);
    break;
  }
  // Its three attempts.
  expect(crashes).toBe(3);
  expect(await queue.find(database.db, deadly)).toMatchObject({
    state: 'discarded',
    errors: [{ name: 'WorkerLostError' }],
  });
  const withDeadly = (await ledger.batches()).filter((batch) => batch.includes(-1));
  expect(withDeadly.map(({ length }) => length)).toEqual([64, 8, 1]);
  const [{ completed = 0 } = {}] = await database.client<{ completed: number }[]>`
    select count(*)::int as completed from queue_results where state = 'completed'`;
  // Of those that have ended when the worker dies, some may not be written yet.
  expect(completed).toBeGreaterThanOrEqual(HARMLESS - 10);
});
