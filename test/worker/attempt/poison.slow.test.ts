import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQueue, drain, handle } from 'drizzle-queue';
import { expect, onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { deadly, harmless } from '../fixtures/last-attempt-jobs.ts';
import { poison } from '../fixtures/poison-job.ts';
import { startWorkerProcess } from '../worker-process.ts';

const database = useTestDatabase();
const queue = createQueue();

test('a job that kills its worker each time is discarded with that reason, after maxAttempts', {
  timeout: 240_000,
}, async () => {
  const { id } = await queue.enqueue(database.db, poison);
  for (const attempt of [1, 2]) {
    const { child } = startWorkerProcess('worker/fixtures/poisoned-worker.ts', {
      DATABASE_URL: database.url,
    });
    const [, signal] = await once(child, 'exit');
    expect(signal).toBe('SIGKILL');
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'running', attempt });
    // As if it had been gone for long enough, so that the next worker need not wait.
    await database.client`delete from queue_workers`;
  }
  let ran = false;
  const drained = await drain(database.db, {
    queue,
    deadlineMs: 30_000,
    handlers: [
      handle(poison, () => {
        ran = true;
      }),
    ],
  });
  expect(drained).toMatchObject({ discarded: 1, completed: 0 });
  expect(ran).toBe(false);
  expect(await queue.find(database.db, id)).toMatchObject({
    state: 'discarded',
    errors: [{ name: 'WorkerLostError', message: expect.stringContaining('was claimed 2 times') }],
  });
});

/** The numbers of the jobs that began, one after the other, while processes were killed until one has found nothing more to do. */
async function workUntilEmpty(
  maxCrashes: number,
): Promise<{ readonly began: number[]; readonly crashes: number }> {
  const directory = await mkdtemp(join(tmpdir(), 'last-attempt-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const LEDGER = join(directory, 'began');
  for (let crashes = 0; crashes <= maxCrashes; crashes++) {
    const { child } = startWorkerProcess('worker/fixtures/last-attempt-worker.ts', {
      DATABASE_URL: database.url,
      LEDGER,
    });
    const [code, signal] = await once(child, 'exit');
    await database.client`delete from queue_workers`;
    if (signal === 'SIGKILL') continue;
    expect(code).toBe(0);
    return { began: (await readFile(LEDGER, 'utf8')).trim().split('\n').map(Number), crashes };
  }
  throw new Error(`more than ${maxCrashes} crashes`);
}

const HARMLESS = 600;
const DEADLY = 400;

/** Enqueues the harmless jobs, with the one that kills its worker among them. */
async function enqueueAll(maxAttempts: {
  readonly harmless: number;
  readonly deadly: number;
}): Promise<void> {
  const numbered = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({ payload: { n: from + index } }));
  const options = { maxAttempts: maxAttempts.harmless };
  const entries = (from: number, count: number) =>
    numbered(from, count).map((entry) => ({ ...entry, ...options }));
  await queue.enqueueMany(database.db, harmless, entries(0, DEADLY));
  await queue.enqueue(database.db, deadly, { n: DEADLY }, { maxAttempts: maxAttempts.deadly });
  await queue.enqueueMany(database.db, harmless, entries(DEADLY + 1, HARMLESS - DEADLY));
}

interface Ended {
  readonly n: number;
  readonly state: string;
  readonly error: string | null;
}

async function ended(): Promise<Ended[]> {
  return await database.client<Ended[]>`
    select (payload ->> 'n')::int as n, state, errors -> -1 ->> 'name' as error from queue_results
    where kind in ('harmless', 'deadly') order by 1`;
}

test('a job with one attempt that kills its worker takes with it what has begun, and nothing that stands behind it', {
  timeout: 120_000,
}, async () => {
  await database.client`truncate queue_jobs, queue_results`;
  await enqueueAll({ harmless: 1, deadly: 1 });
  const { began, crashes } = await workUntilEmpty(1);
  expect(crashes).toBe(1);
  // No attempt runs twice.
  expect(new Set(began).size).toBe(began.length);
  const results = await ended();
  expect(results).toHaveLength(HARMLESS + 1);
  // Whatever is discarded has begun before the crash.
  const beforeCrash = new Set(began.slice(0, began.indexOf(DEADLY) + 1));
  const discarded = results.filter(({ state }) => state === 'discarded');
  expect(discarded.filter(({ n }) => !beforeCrash.has(n))).toEqual([]);
  expect(discarded.every(({ error }) => error === 'WorkerLostError')).toBe(true);
  expect(discarded.map(({ n }) => n)).toContain(DEADLY);
  expect(began.length).toBe(HARMLESS + 1);
});

test('of a backlog after a crash the job that kills its worker is discarded after maxAttempts, and nothing else', {
  timeout: 120_000,
}, async () => {
  await database.client`truncate queue_jobs, queue_results`;
  await enqueueAll({ harmless: 20, deadly: 3 });
  // As a worker leaves them that had claimed them all when it died.
  await database.client`update queue_jobs set attempt = 1, fence = 1, worker_id = 999999, claimed_at = now()`;
  const { began, crashes } = await workUntilEmpty(2);
  expect(crashes).toBe(2);
  expect(began.filter((n) => n === DEADLY)).toHaveLength(2);
  const results = await ended();
  expect(results).toHaveLength(HARMLESS + 1);
  expect(results.filter(({ state }) => state !== 'completed')).toEqual([
    { n: DEADLY, state: 'discarded', error: 'WorkerLostError' },
  ]);
});
