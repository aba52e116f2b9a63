import { expect, test } from 'vitest';
import { runningMsUntil } from '../../support/running-time.ts';
import {
  database,
  openPostgresJs,
  queue,
  sleep,
  startProcess,
  startWorker,
  untilSeen,
  useObservedWorkers,
  workerRow,
} from './observed-workers.ts';

useObservedWorkers();

/** From 76 on each looks at the others less often. */
const LIVING = 80;

test(`among ${LIVING} workers that live, a killed one is found as soon as among few, by one of them`, async () => {
  const { process, id, jobId } = await startProcess('sleeps', () => queue.enqueue(database.db, sleep));
  const { db } = openPostgresJs();
  let begin = (_: { readonly attempt: number; readonly atMs: number }) => {};
  const begun = new Promise<Parameters<typeof begin>[0]>((resolve) => {
    begin = resolve;
  });
  const workers = await Promise.all(
    Array.from({ length: LIVING }, () =>
      startWorker((attempt) => begin({ attempt, atMs: performance.now() }), { db }),
    ),
  );
  // Each has looked at all of them by then, and rests for as long as it does among so many.
  for (const { id } of [workers.at(0), workers.at(-1)].flatMap((worker) => worker ?? [])) await untilSeen(id);

  process.child.kill('SIGKILL');
  const killedMs = performance.now();
  const tookMs = await runningMsUntil(begun);
  const { attempt, atMs } = await begun;
  // Of 80 each looks every 1.6 seconds. Beside that it takes `reconnectMs` of 2.5 seconds.
  expect(tookMs).toBeLessThan(10_000);
  expect(atMs - killedMs).toBeGreaterThan(2_000);
  expect(attempt).toBe(2);
  expect(await workerRow(id)).toBe(undefined);
  expect(workers.flatMap(({ gone }) => gone)).toEqual([id]);
  expect(workers.flatMap(({ lost }) => lost)).toEqual([]);
  expect((await queue.find(database.db, jobId))?.attempt).toBe(2);
}, 240_000);

test('a worker with a short reconnectMs, among many, asks often enough to know that the database answers', async () => {
  await database.client`
    insert into queue_workers (name, queues, seen_at)
    select 'other', '[]', now() + interval '1 hour' from generate_series(1, 200)`;
  const { worker, id } = await startWorker(undefined, { reconnectMs: 1_000 });
  await untilSeen(id);
  let isSuspended = false;
  let isStalled = false;
  do {
    // On a busy machine it may be late for itself: once more.
    isSuspended = isStalled = false;
    let lastMs = performance.now();
    for (const untilMs = lastMs + 10_000; performance.now() < untilMs; ) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      const nowMs = performance.now();
      isStalled ||= nowMs - lastMs > 200;
      lastMs = nowMs;
      isSuspended ||= worker.health().reasons.some((reason) => reason.includes('suspended'));
    }
  } while (isSuspended && isStalled);
  expect(isSuspended).toBe(false);
}, 240_000);
