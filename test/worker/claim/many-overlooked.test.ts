import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { beforeEach, onTestFinished, test } from 'vitest';
import { clearTables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const SLOTS = 500;
/** Three rounds of all slots are left when the first one has been claimed: more than a sweep goes on beside. */
const JOBS = SLOTS * 4;
/** Longer than a queue is polled often after a job. */
const HANDLER_MS = 400;

const database = useTestDatabase({ max: 10 });
const queue = createQueue();
const work = defineJob('work');

beforeEach(() => clearTables(database.client));

test('thousands that lie behind the floors are all done, although their handlers take long', async () => {
  const ran = new Set<number>();
  const worker = createWorker(database.db, {
    queue,
    concurrency: SLOTS,
    handlers: [
      handle(work, async ({ job }) => {
        ran.add(job.id);
        await new Promise((resolve) => setTimeout(resolve, HANDLER_MS));
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  const idle = nextEvent(worker, 'idle');
  await worker.start();
  await idle;
  // As a transaction that took an hour would.
  const runAt = new Date(Date.now() - 3_600_000);
  await queue.enqueueMany(database.db, work, new Array(JOBS).fill({ runAt }));
  await until(() => ran.size === JOBS);
});
