import type { SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { queueResults } from 'drizzle-queue/schema';
import { beforeEach, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');
const handlers = [handle(work, () => {})];
const DAY_MS = 86_400_000;

/** Results of so many jobs, which finished the given number of days ago. */
async function insertResults(count: number, days: number): Promise<void> {
  await database.client`
    insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence, metadata,
      created_at, run_at, finished_at)
    select ${days}::int * 100000 + n, 'default', 'work', 'null', 'completed', '[]', 1, 1, 5, 1, '{}', now(), now(),
      now() - ${days}::int * interval '1 day'
    from generate_series(1, ${count}::int) as n`;
}

/** A database that tells when each batch of results was deleted. */
function timed(db: typeof database.db, onPruned: (startMs: number, endMs: number) => void) {
  const dialect = new PgDialect();
  return new Proxy(db, {
    get: (target, key) =>
      key !== 'execute'
        ? Reflect.get(target, key)
        : async (query: SQLWrapper) => {
            const startMs = performance.now();
            const result = await target.execute(query.getSQL());
            const text = dialect.sqlToQuery(query.getSQL()).sql;
            if (text.includes('from expired')) onPruned(startMs, performance.now());
            return result;
          },
  });
}

beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers`;
});

describe('retentionMs', () => {
  test('a worker deletes what is older, in batches, and nothing else', async () => {
    await insertResults(2_500, 8);
    await insertResults(100, 6);
    const worker = createWorker(database.db, { queue, handlers });
    await worker.start();
    await until(async () => (await database.db.$count(queueResults)) === 100);
    await worker.stop();
  });

  test('is a week unless given', async () => {
    await insertResults(10, 2);
    const worker = createWorker(database.db, { queue, handlers, retentionMs: DAY_MS });
    await worker.start();
    await until(async () => (await database.db.$count(queueResults)) === 0);
    await worker.stop();
  });

  test('three workers together delete for a tenth of the time when the retention was lowered', {
    timeout: 240_000,
  }, async () => {
    await insertResults(40_000, 8);
    const batchesOf = (await database.connect(3)).map(({ db }) => {
      const batches: { startMs: number; endMs: number }[] = [];
      const worker = createWorker(
        timed(db, (startMs, endMs) => batches.push({ startMs, endMs })),
        { queue, handlers, listen: false, pollIntervalMs: 60_000 },
      );
      return { worker, batches };
    });
    await Promise.all(batchesOf.map(({ worker }) => worker.start()));
    const allThereMs = performance.now();
    const countedBatches = () =>
      batchesOf.map(({ batches }) => batches.filter(({ startMs }) => startMs > allThereMs));
    // On a busy machine a batch takes a second, and each worker then rests for half a minute.
    await until(() => countedBatches().every((batches) => batches.length >= 3), { timeoutMs: 230_000 });
    await Promise.all(batchesOf.map(({ worker }) => worker.stop()));
    for (const batches of countedBatches()) {
      for (const [i, { startMs, endMs }] of batches.slice(0, -1).entries()) {
        const restMs = (batches[i + 1]?.startMs ?? 0) - endMs;
        // A tenth for three workers: each works for a thirtieth of its time, or rests for a minute; a quarter is jitter.
        expect(restMs).toBeGreaterThan(0.75 * Math.min(29 * (endMs - startMs), 60_000));
      }
    }
    expect(await database.db.$count(queueResults)).toBeGreaterThan(0);
  });

  test('Infinity keeps everything', async () => {
    await insertResults(10, 1_000);
    const worker = createWorker(database.db, { queue, handlers, retentionMs: Number.POSITIVE_INFINITY });
    const idle = nextEvent(worker, 'idle');
    await worker.start();
    await idle;
    await worker.stop();
    expect(await database.db.$count(queueResults)).toBe(10);
  });
});
