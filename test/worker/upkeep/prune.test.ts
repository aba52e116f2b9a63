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
