import { createQueue, createWorker, defineJob, fixedBackoff, handle, unvalidated } from 'drizzle-queue';
import { spy, waitUntil } from 'drizzle-queue/testing';
import { afterEach, beforeEach, expect, expectTypeOf, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<number>(), maxAttempts: 2, backoff: fixedBackoff(0) });
const handlers = [
  handle(work, ({ payload }) => {
    if (payload < 0) throw new Error('below 0');
  }),
];
const open = () => createWorker(database.db, { queue, handlers, pollIntervalMs: 5 });
let worker = undefined as unknown as ReturnType<typeof open>;

beforeEach(() => {
  worker = open();
});
afterEach(async () => {
  await worker.stop();
});

test('waitUntil resolves with the next such event', async () => {
  await worker.start();
  const discarded = waitUntil(worker, 'discarded', { job: work, where: ({ job }) => job.payload === -2 });
  await queue.enqueueMany(database.db, work, [{ payload: -1 }, { payload: -2 }]);
  const told = await discarded;
  expectTypeOf(told.error).toEqualTypeOf<unknown>();
  expect(told).toMatchObject({ job: { payload: -2, attempt: 2 }, error: { message: 'below 0' } });
});

test('a spy tells what has happened before it is asked', async () => {
  const seen = spy(worker);
  await worker.start();
  const one = await queue.enqueue(database.db, work, 1);
  const failing = await queue.enqueue(database.db, work, -1);
  await seen.waitForJob({ id: failing.id }, 'discarded');
  // It has come already.
  expect(await seen.waitForJob({ id: one.id, timeoutMs: 10_000 }, 'completed')).toMatchObject({
    job: { id: one.id },
  });
  const failed = seen.events.filter(({ told }) => told.job.id === failing.id).map(({ event }) => event);
  expect(failed.filter((event) => event !== 'began')).toEqual(['failed', 'failed', 'discarded']);
  seen.stop();
  const count = seen.events.length;
  const completed = waitUntil(worker, 'completed');
  await queue.enqueue(database.db, work, 2);
  await completed;
  expect(seen.events).toHaveLength(count);
});

test('says what came instead', async () => {
  await worker.start();
  const seen = spy(worker);
  const { id } = await queue.enqueue(database.db, work, -1);
  await seen.waitForJob({ id }, 'discarded');
  await expect(seen.waitForJob({ id, job: work, timeoutMs: 20 }, 'completed')).rejects.toThrow(
    new RegExp(
      `^waitForJob: no 'completed' of 'work' of job ${id} within 20 ms; it announced\\n[^]*` +
        `discarded ${id} 'work' \\(below 0\\)$`,
    ),
  );
  await expect(waitUntil(worker, 'lost', { timeoutMs: 5 })).rejects.toThrow(
    "waitUntil: no 'lost' within 5 ms; the worker announced nothing",
  );
});

test('refuses wrong arguments', async () => {
  // @ts-expect-error no worker
  await expect(waitUntil({}, 'completed')).rejects.toThrow('waitUntil takes what createWorker() returns');
  // @ts-expect-error not of a job
  await expect(waitUntil(worker, 'started')).rejects.toThrow('waitUntil: the event must be one of began');
  // @ts-expect-error no such name
  await expect(waitUntil(worker, 'completed', { kind: 'a' })).rejects.toThrow("unknown option 'kind'");
  await expect(waitUntil(worker, 'completed', { timeoutMs: 0 })).rejects.toThrow(RangeError);
});
