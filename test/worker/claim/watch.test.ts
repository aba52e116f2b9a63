import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handle,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Condition } from '../../../src/core/time/condition.ts';
import { HotPolling } from '../../../src/core/worker/claim/hot-polling.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 4 });
const queue = createQueue();

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

/** A worker that serves so many idle queues, and the statements that it sends. */
async function idleWorker(queues: number, listen: boolean) {
  const statements: string[] = [];
  const client = postgres(database.url, { max: 4, debug: (_, text) => statements.push(text) });
  const handlers = Array.from({ length: queues }, (_, n) =>
    handle(defineJob(`work${n}`, { queue: `queue${n}` }), () => {}),
  );
  const worker = createWorker(drizzle({ client }), { queue, handlers, listen });
  let idle = 0;
  worker.on('idle', () => idle++);
  const mode = nextEvent(worker, listen ? 'listening' : 'polling');
  await worker.start();
  await mode;
  await until(() => idle === queues);
  // Looks alone: it is hot no more since it began to listen.
  await until(() => {
    const aboutJobs = statements.filter((text) => text.includes('"queue_jobs"'));
    return aboutJobs.length > 3 && aboutJobs.slice(-3).every((text) => /due_at|overlooked/.test(text));
  });
  return {
    statements,
    stop: async () => {
      await worker.stop();
      await client.end();
    },
  };
}

describe('an idle worker', () => {
  test.each([1, 50])('that listens asks about once a second, for %i queues', async (queues) => {
    const { statements, stop } = await idleWorker(queues, true);
    const startMs = performance.now();
    const before = statements.length;
    const count = () => statements.length - before;
    // So many that it matters little when in the round of each the count begins.
    await until(() => count() >= 16);
    // With its checks of the workers: two statements every three seconds.
    expect((1_000 * (count() - 1)) / (performance.now() - startMs)).toBeLessThan(2.8);
    // One look for all of them, and one sweep.
    expect(new Set(statements.slice(before).filter((text) => /"queue_jobs"/.test(text))).size).toBe(2);
    const sessions = await database.client`
      select from pg_locks as l join pg_database as d on d.oid = l.database
      where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and d.datname = current_database()`;
    expect(sessions).toHaveLength(1);
    await stop();
  });

  test('that polls asks every pollIntervalMs, once for all its queues', async () => {
    const { statements, stop } = await idleWorker(50, false);
    const startMs = performance.now();
    const before = statements.length;
    const count = () => statements.length - before;
    await until(() => count() >= 30);
    expect((1_000 * (count() - 1)) / (performance.now() - startMs)).toBeLessThan(22);
    await stop();
  });

  test('starts scheduled jobs on time', async () => {
    let late: number[] = [];
    const work = defineJob('work', { payload: unvalidated<undefined>() });
    const worker = createWorker(database.db, {
      queue,
      // By looking alone it would find them after a minute.
      pollIntervalMs: 60_000,
      handlers: [handle(work, ({ job }) => void late.push(Date.now() - job.runAt.getTime()))],
    });
    onTestFinished(() => worker.stop());
    const listening = nextEvent(worker, 'listening');
    const idle = nextEvent(worker, 'idle');
    await worker.start();
    await Promise.all([listening, idle]);
    const latest: number[] = [];
    // A machine that is short of processors may hold up some of them.
    do {
      late = [];
      await queue.enqueueMany(
        database.db,
        work,
        // Further apart than a queue stays hot.
        [1_600, 2_250, 2_900, 3_550].map((delayMs) => ({ delayMs })),
      );
      await database.client`select pg_notify('queue_wake_queue_jobs', 'default')`;
      await until(() => late.length === 4);
      expect(Math.min(...late)).toBeGreaterThanOrEqual(-1);
      latest.push(Math.max(...late));
    } while (Math.min(...latest) >= 250 && latest.length < 5);
    expect(Math.min(...latest)).toBeLessThan(250);
  });

  test.each(['fails', 'snoozes'])('does not wait for the next look for a job that %s', async (how) => {
    const statements: string[] = [];
    const client = postgres(database.url, { max: 4, debug: (_, text) => statements.push(text) });
    const looks = () => statements.filter((text) => text.includes('due_at')).length;
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let runs = 0;
    const work = defineJob('work', { backoff: fixedBackoff(350) });
    const worker = createWorker(drizzle({ client }), {
      queue,
      // By looking alone it would find it after a minute.
      pollIntervalMs: 60_000,
      handlers: [
        handle(work, async () => {
          if (runs++ > 0) return;
          await finished;
          if (how === 'fails') throw new Error('not now');
          return snooze(350);
        }),
      ],
    });
    const idle = nextEvent(worker, 'listening');
    await worker.start();
    await idle;
    await until(() => looks() > 0);
    const before = looks();
    await queue.enqueue(database.db, work);
    await database.client`select pg_notify('queue_wake_queue_jobs', 'default')`;
    // The job runs, and its queue is idle: it has been looked at again.
    await until(() => looks() > before && runs === 1);
    const completed = nextEvent(worker, 'completed');
    finish();
    await completed;
    await worker.stop();
    await client.end();
  });
});

describe('HotPolling', () => {
  test('is idle until a job comes, then looks every few milliseconds, and less and less often', () => {
    const pace = new HotPolling(75);
    expect(pace.gapMs(0)).toBeUndefined();
    pace.note(1_000, false);
    expect([1_000, 1_008, 1_100, 1_299].map((now) => pace.gapMs(now))).toEqual([2, 2, 25, 74.75]);
    expect(pace.gapMs(1_300)).toBeUndefined();
  });

  test('stays idle after a job that was told of by one of those who tell of each', () => {
    const pace = new HotPolling(75);
    pace.note(1_000, true);
    expect(pace.gapMs(1_000)).toBeUndefined();
    expect(pace.quietMs(1_100)).toBe(100);
    pace.note(2_000, false);
    pace.note(2_100, true);
    expect(pace.gapMs(2_100)).toBe(25);
    expect(pace.gapMs(2_300)).toBeUndefined();
  });

  test('never waits longer than the worker polls', () => {
    const pace = new HotPolling(5);
    pace.note(0, false);
    expect(pace.gapMs(200)).toBe(5);
  });
});

describe('Condition', () => {
  test('ends a pause', async () => {
    const alarm = new Condition();
    const rung = alarm.wait(Number.POSITIVE_INFINITY);
    alarm.signal();
    expect(await rung).toBe(true);
    expect(await alarm.wait(1)).toBe(false);
  });

  test('remembers a ring that came before the pause, unless it is cleared', async () => {
    const alarm = new Condition();
    alarm.signal();
    expect(await alarm.wait(Number.POSITIVE_INFINITY)).toBe(true);
    alarm.signal();
    alarm.clear();
    expect(await alarm.wait(1)).toBe(false);
  });
});
