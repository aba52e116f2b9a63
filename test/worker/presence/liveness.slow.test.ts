import { describe, expect, test } from 'vitest';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import {
  block,
  database,
  openPostgresJs,
  queue,
  sessionHeld,
  sleep,
  startProcess,
  startWorker,
  untilSeen,
  untilSession,
  useObservedWorkers,
  workerRow,
} from './observed-workers.ts';

useObservedWorkers();

describe('a worker process', () => {
  test('whose event loop is blocked for 14 seconds is not gone: it runs its job, once', {
    timeout: 240_000,
  }, async () => {
    const { process, id, jobId } = await startProcess('blocks', () =>
      queue.enqueue(database.db, block, { ms: 14_000 }),
    );
    const peer = await startWorker();
    const before = await workerRow(id);
    const startMs = performance.now();
    let silentMs = 0;
    await until(async () => {
      if ((await workerRow(id))?.seen === before?.seen) silentMs = performance.now() - startMs;
      return (await queue.find(database.db, jobId))?.state === 'completed';
    });
    expect(silentMs).toBeGreaterThan(10_000);
    expect(await queue.find(database.db, jobId)).toMatchObject({ attempt: 1, output: 'blocked' });
    await untilSeen(id);
    expect(await workerRow(id)).toMatchObject({ session: true });
    expect(peer.gone).toEqual([]);
    expect(await process.end('SIGTERM')).toBe(0);
    expect(process.output()).not.toMatch(/error|lost/);
  });

  test('that is stopped for long is gone; when it goes on it comes back, and what it lost is aborted', {
    timeout: 240_000,
  }, async () => {
    const { process, id, jobId } = await startProcess('sleeps', () => queue.enqueue(database.db, sleep));
    const peer = await startWorker(undefined, { frozenMs: 15_000 });
    const completed = nextEvent(peer.worker, 'completed');
    process.child.kill('SIGSTOP');
    await completed;
    expect(peer.gone).toEqual([id]);
    // Its session was there all the time.
    expect(await sessionHeld(id)).toBe(true);
    process.child.kill('SIGCONT');
    await process.printed(`lost ${jobId}`);
    await untilSession(id);
    expect(await queue.find(database.db, jobId)).toMatchObject({ state: 'completed', output: 2 });
    // It works as before.
    await peer.worker.stop();
    const { id: next } = await queue.enqueue(database.db, block, { ms: 1 });
    await until(async () => (await queue.find(database.db, next))?.state === 'completed');
    expect(await process.end('SIGTERM')).toBe(0);
  });
});

test('an idle worker sends at most 0.7 statements a second about who lives', async () => {
  const { db, statements } = openPostgresJs();
  const one = await startWorker(undefined, { db });
  await untilSeen(one.id);
  const before = statements.length;
  const checks = () => statements.slice(before).filter(({ text }) => text.includes('pg_try_advisory'));
  await until(() => checks().length >= 6);
  const [first, last] = [checks()[0]?.atMs ?? 0, checks()[5]?.atMs ?? 0];
  expect((1_000 * 5) / (last - first)).toBeLessThan(0.7);
  // One and the same statement says it all.
  const others = statements.slice(before).filter(({ text }) => !text.includes('pg_try_advisory'));
  expect(
    others.filter(({ text }) => text.includes('"queue_workers" as w (') || /pg_notify/.test(text)),
  ).toEqual([]);
});
