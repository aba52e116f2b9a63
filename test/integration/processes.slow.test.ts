import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { createQueue } from 'drizzle-queue';
import { queueJobs, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { afterAll, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess } from '../worker/worker-process.ts';
import { count } from './fixtures/count-job.ts';

const database = useTestDatabase();
const queue = createQueue();
const ledgers = mkdtempSync(join(tmpdir(), 'drizzle-queue-ledgers-'));
afterAll(() => rmSync(ledgers, { recursive: true }));

const JOBS = 100_000;

test('4 processes drain 100,000 jobs that arrive while they work: 0 lost, 0 doubled', {
  timeout: 180_000,
}, async () => {
  const processes = [1, 2, 3, 4].map((n) => ({
    ledger: join(ledgers, `${n}.json`),
    worker: startWorkerProcess('integration/fixtures/counting-worker.ts', {
      DATABASE_URL: database.url,
      LEDGER: join(ledgers, `${n}.json`),
    }),
  }));
  await Promise.all(processes.map(({ worker }) => worker.printed('started')));
  for (let from = 0; from < JOBS; from += 5_000) {
    const entries = Array.from({ length: 5_000 }, (_, i) => ({ payload: { n: from + i } }));
    await queue.enqueueMany(database.db, count, entries);
  }
  await until(async () => (await database.db.$count(queueJobs)) === 0, {
    timeoutMs: 170_000,
    intervalMs: 250,
  });
  const codes = await Promise.all(processes.map(({ worker }) => worker.end('SIGTERM')));
  expect(codes).toEqual([0, 0, 0, 0]);
  expect(processes.map(({ worker }) => worker.output()).join('')).not.toContain('lost');

  const runs: number[] = processes.flatMap(({ ledger }) => JSON.parse(readFileSync(ledger, 'utf8')));
  expect(runs).toHaveLength(JOBS);
  expect(new Set(runs).size).toBe(JOBS);
  const [ends] = await database.db
    .select({
      completed: sql<number>`count(*) filter (where ${queueResults.state} = 'completed')::int`,
      right: sql<number>`count(*) filter (where ${queueResults.output} = ${queueResults.payload} -> 'n')::int`,
      payloads: sql<number>`count(distinct ${queueResults.payload})::int`,
      // A fence begins at the milliseconds of the insert.
      claims: sql<number>`max(${queueResults.fence} - floor(extract(epoch from ${queueResults.createdAt}) * 1000))::int`,
    })
    .from(queueResults);
  expect(ends).toEqual({ completed: JOBS, right: JOBS, payloads: JOBS, claims: 1 });
  expect(await database.db.$count(queueWorkers)).toBe(0);
});
