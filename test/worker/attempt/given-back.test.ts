import { createQueue, createWorker, defineJob, drain, handle, type WorkerEvents } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { beforeEach, expect, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 6 });
const queue = createQueue();
const quick = defineJob('quick');
const slow = defineJob('slow', { priority: 9 });

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

/** A worker that has learned to claim ahead, runs one slow job in its only slot, and holds more that wait behind it. */
async function claimedAhead() {
  await queue.enqueueMany(
    database.db,
    quick,
    Array.from({ length: 50 }, () => ({})),
  );
  await queue.enqueueMany(
    database.db,
    slow,
    Array.from({ length: 20 }, () => ({})),
  );
  const told: WorkerEvents['interrupted'][0][] = [];
  let began = 0;
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const worker = createWorker(database.db, {
    queue,
    queues: { default: { concurrency: 1 } },
    handlers: [
      handle(quick, () => {}),
      handle(slow, () => {
        began++;
        return ended;
      }),
    ],
  });
  worker.on('interrupted', (event) => told.push(event));
  await worker.start();
  await until(() => began > 0);
  return { worker, told, end };
}

test('jobs that were claimed ahead and given back are announced as interrupted, and had not begun', async () => {
  const { worker, told, end } = await claimedAhead();
  // They wait for the slot in vain, and after half a second somebody else may have them.
  await until(() => told.length > 0);
  const [first] = told;
  expect(first).toMatchObject({ job: { kind: 'slow', attempt: 1 }, began: false });
  for (const { job } of told) {
    const row = (await database.db.select().from(queueJobs)).find(({ id }) => id === job.id);
    expect(row).toMatchObject({ attempt: 0, workerId: null, errors: [] });
  }
  end();
  await until(async () => (await database.db.select().from(queueJobs)).length === 0);
  await worker.stop();
});

// What waits is given back after half a second, which a busy machine may let pass before the request is made.
test('one that somebody has asked to end is announced as cancelled when it is given back', {
  retry: 2,
}, async () => {
  const { worker, told, end } = await claimedAhead();
  const cancelled: WorkerEvents['cancelled'][0][] = [];
  worker.on('cancelled', (event) => cancelled.push(event));
  const rows = await database.db.select().from(queueJobs);
  const held = rows.filter(({ workerId }) => workerId !== null).map(({ id }) => id);
  expect(held.length).toBeGreaterThan(1);
  const last = Math.max(...held);
  expect(await queue.cancel(database.db, last, { reason: 'not wanted' })).toEqual({ cancelled: 'requested' });
  await until(() => cancelled.length > 0);
  expect(cancelled).toMatchObject([{ job: { id: last }, reason: 'not wanted' }]);
  expect(told.map(({ job }) => job.id)).not.toContain(last);
  expect((await queue.find(database.db, last))?.state).toBe('cancelled');
  end();
  await worker.stop();
});

test('a drain counts as interrupted what its end has interrupted, not what it gave back', async () => {
  await queue.enqueueMany(
    database.db,
    quick,
    Array.from({ length: 50 }, () => ({})),
  );
  await queue.enqueueMany(
    database.db,
    slow,
    Array.from({ length: 20 }, () => ({})),
  );
  const over = new AbortController();
  const draining = drain(database.db, {
    queue,
    queues: { default: { concurrency: 1 } },
    handlers: [handle(quick, () => {}), handle(slow, () => new Promise(() => {}))],
    deadlineMs: 3_600_000,
    signal: over.signal,
  });
  // The fence counts claims from the time when the job was created.
  await until(
    async () =>
      (
        await database.client`
          select from queue_jobs
          where worker_id is null and fence > floor(extract(epoch from created_at) * 1000)`
      ).length > 0,
  );
  over.abort();
  const drained = await draining;
  expect(drained).toMatchObject({ completed: 50, interrupted: 1, empty: false });
  const rows = await database.db.select().from(queueJobs);
  expect(rows).toHaveLength(20);
  for (const row of rows) expect(row).toMatchObject({ attempt: 0, workerId: null });
});
