import { sql } from 'drizzle-orm';
import {
  cancel,
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handle,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import { queueJobs, queueResults } from 'drizzle-queue/schema';
import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 4 });
const queue = createQueue();

const JOBS = 100_000;
const WORKERS = 12;
const fates = ['finish', 'fail once', 'fail', 'snooze', 'cancel'] as const;
type Fate = (typeof fates)[number];
const live = defineJob('live', {
  payload: unvalidated<{ fate: Fate }>(),
  maxAttempts: 2,
  backoff: fixedBackoff(0),
});

/** Most jobs just finish; the others spread over the other fates. */
const fateOf = (n: number): Fate => fates[n % 16] ?? 'finish';

test('12 workers, 100,000 jobs of all fates: none lost, none doubled, none held by two', {
  timeout: 180_000,
}, async () => {
  await database.client`alter table queue_jobs set (fillfactor = 50)`;
  for (let from = 0; from < JOBS; from += 10_000) {
    const entries = Array.from({ length: 10_000 }, (_, i) => ({ payload: { fate: fateOf(from + i) } }));
    await queue.enqueueMany(database.db, live, entries);
  }

  const holding = new Set<number>();
  const runs = new Map<number, number>();
  const doubled: number[] = [];
  const problems: unknown[] = [];
  let largestClaim = 0;
  const handler = handle(live, async ({ job, payload }) => {
    if (holding.has(job.id)) doubled.push(job.id);
    holding.add(job.id);
    const run = (runs.get(job.id) ?? 0) + 1;
    runs.set(job.id, run);
    // Long enough for another worker to claim the same job, if it could.
    await new Promise(setImmediate);
    holding.delete(job.id);
    switch (payload.fate) {
      case 'finish':
        return run;
      case 'fail once':
        if (run === 1) throw new Error('once');
        return run;
      case 'fail':
        throw new Error('always');
      case 'snooze':
        return run === 1 ? snooze(0) : run;
      case 'cancel':
        return cancel('not wanted');
    }
  });
  const connections = await database.connect(WORKERS);
  const workers = connections.map(({ db }) =>
    createWorker(db, { queue, handlers: [handler], queues: { default: { concurrency: 100 } } })
      .on('claimed', ({ count }) => {
        largestClaim = Math.max(largestClaim, count);
      })
      .on('error', (error) => problems.push(error))
      .on('lost', (lost) => problems.push(lost)),
  );
  await Promise.all(workers.map((worker) => worker.start()));
  await until(async () => (await database.db.$count(queueJobs)) === 0, {
    timeoutMs: 170_000,
    intervalMs: 250,
  });
  await Promise.all(workers.map((worker) => worker.stop()));

  expect(doubled).toEqual([]);
  expect(problems).toEqual([]);
  // The slots, and what may be claimed ahead of them.
  expect(largestClaim).toBeLessThanOrEqual(100 + 4_000);
  const planned = (fate: Fate) =>
    Array.from({ length: JOBS }, (_, n) => fateOf(n)).filter((f) => f === fate).length;
  const ends = await database.db
    .select({
      fate: sql<Fate>`${queueResults.payload} ->> 'fate'`.as('fate'),
      state: queueResults.state,
      attempt: queueResults.attempt,
      // A claim raises the fence by one, so this is how often a job was claimed; more often when it was given back unbegun.
      // A fence begins at the milliseconds of the insert.
      claims: sql<number>`min(${queueResults.fence} - floor(extract(epoch from ${queueResults.createdAt}) * 1000))::int`,
      errors: sql<number>`jsonb_array_length(${queueResults.errors})`.as('errors'),
      jobs: sql<number>`count(*)::int`,
    })
    .from(queueResults)
    .groupBy(sql`1, 2, 3, 5`)
    .orderBy(sql`1`);
  expect(ends).toEqual([
    { fate: 'cancel', state: 'cancelled', attempt: 1, claims: 1, errors: 1, jobs: planned('cancel') },
    { fate: 'fail', state: 'discarded', attempt: 2, claims: 2, errors: 2, jobs: planned('fail') },
    { fate: 'fail once', state: 'completed', attempt: 2, claims: 2, errors: 1, jobs: planned('fail once') },
    { fate: 'finish', state: 'completed', attempt: 1, claims: 1, errors: 0, jobs: planned('finish') },
    { fate: 'snooze', state: 'completed', attempt: 1, claims: 2, errors: 0, jobs: planned('snooze') },
  ]);
  const totalRuns = [...runs.values()].reduce((sum, n) => sum + n, 0);
  expect(totalRuns).toBe(JOBS + planned('fail once') + planned('fail') + planned('snooze'));
  const { rows } = await deadlocks();
  expect(rows).toBe(0);
});

async function deadlocks(): Promise<{ rows: number }> {
  const [row] =
    await database.client`select deadlocks::int from pg_stat_database where datname = current_database()`;
  return { rows: Number(row?.deadlocks) };
}
