import { sql } from 'drizzle-orm';
import { createQueue, createWorker, defineJob, handle, runNext } from 'drizzle-queue';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { countFinished } from '../../../src/core/queries/browse/count-finished.ts';
import { addMetricsTable } from '../../support/control-tables.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue({ metrics: queueMetrics });
const ancient = defineJob('ancient');
const handlers = [handle(ancient, () => {})];

beforeAll(() => addMetricsTable(database));
beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_metrics');
});

/** As many jobs as several claims take, which an expression of the app's has made due then. */
async function enqueue(count: number, at: string): Promise<void> {
  const rows = database.db
    .select({ n: sql<number>`n`.as('n') })
    .from(sql`generate_series(1, ${count}::int) as n`);
  await queue.enqueueFrom(database.db, ancient, rows, { runAt: () => sql`${at}::timestamptz` });
}

test.each(['0044-03-15 BC', '4713-11-25 BC', '-infinity', '0001-01-01'])(
  'jobs that are due since %s are done, and those behind them',
  async (at) => {
    await enqueue(600, at);
    const errors: unknown[] = [];
    const worker = createWorker(database.db, { queue, handlers, log: false });
    worker.on('error', ({ error }) => errors.push(error));
    await worker.start();
    const done = async () => {
      const [row] = await database.client<{ count: number }[]>`select count(*)::int from queue_results`;
      return row?.count;
    };
    try {
      await until(async () => errors.length > 0 || (await done()) === 600);
      await queue.enqueue(database.db, ancient);
      await until(async () => errors.length > 0 || (await done()) === 601);
    } finally {
      await worker.stop();
    }
    // With the report of the metrics, to which each wait belongs.
    expect(errors).toEqual([]);
    const reported = database.client`select sum(completed)::int as completed from queue_metrics`;
    expect(await reported).toMatchObject([{ completed: 601 }]);
    const { jobs } = await queue.list(database.db, { limit: 1_000 });
    for (const { runAt, createdAt } of jobs) {
      expect([runAt, createdAt].every((time) => time !== null && !Number.isNaN(time.getTime()))).toBe(true);
    }
  },
);

test('runNext goes on behind a job that is due since before Christ', async () => {
  await enqueue(3, '0044-03-15 BC');
  for (let n = 0; n < 3; n++) {
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
  }
  expect(await runNext(database.db, { queue, handlers })).toBeUndefined();
});

test.each(['0044-03-15 BC', '-infinity'])('figures count jobs that are due since %s', async (at) => {
  await enqueue(3, at);
  const { queues } = await queue.stats(database.db);
  expect(queues).toMatchObject([{ due: 3, oldestDueMs: expect.any(Number) }]);
  const oldestDueMs = queues[0]?.oldestDueMs ?? 0;
  expect(Number.isNaN(new Date(Date.now() - oldestDueMs).getTime())).toBe(false);
  const { vitals } = await queue.vitals(database.db);
  expect(vitals.find(({ code }) => code === 'oldest-due')).toMatchObject({ severity: 'error' });
  const worker = createWorker(database.db, { queue, handlers, log: false });
  await worker.start();
  await until(async () => (await database.client`select from queue_results`).length === 3);
  await worker.stop();
  const { minutes } = await countFinished(database.db, queue.tables, {
    scope: { queues: undefined, own: [] },
    minutes: 60,
    bound: 100,
  });
  for (const { waitMs } of minutes) expect(Number.isFinite(waitMs?.p95)).toBe(true);
  expect(minutes.length).toBeGreaterThan(0);
});
