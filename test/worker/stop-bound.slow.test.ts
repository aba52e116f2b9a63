import { setTimeout as delay } from 'node:timers/promises';
import { createQueue, createWorker, defineJob, handle, snooze } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue();

beforeEach(() => clearTables(database.client));
afterEach(() => {
  atFaultPoints();
  vi.restoreAllMocks();
});

/** Something that does not answer before it is told to. */
function hanging(): { readonly answer: Promise<void>; end(): void } {
  let end = () => {};
  const answer = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { answer, end };
}

test('after a stop that did not wait for a settlement nothing more of it is sent', async () => {
  const ends = defineJob('ends');
  const returns = defineJob('returns');
  await queue.enqueueMany(database.db, ends, [{}]);
  await queue.enqueueMany(database.db, returns, [{}]);
  const settlement = hanging();
  let isHanging = false;
  atFaultPoints(async (at) => {
    if (at !== 'settle: finished' || isHanging) return;
    isHanging = true;
    await settlement.answer;
  });
  // Both are settled in one batch: by one statement, and then by another.
  const both = hanging();
  let began = 0;
  const runBoth = async () => {
    if (++began === 2) both.end();
    await both.answer;
  };
  const worker = createWorker(database.db, {
    queue,
    shutdownTimeoutMs: 0,
    handlers: [
      handle(ends, runBoth),
      handle(returns, async () => {
        await runBoth();
        return snooze(60_000);
      }),
    ],
  });
  worker.on('error', () => undefined);
  await worker.start();
  await until(() => isHanging);
  await worker.stop();
  const sent = vi.spyOn(database.client, 'unsafe');
  settlement.end();
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect(sent.mock.calls.map(([text]) => text)).toEqual([]);
});

test('a stop gives back what it did not hear of that it has begun', async () => {
  const once = defineJob('once', { maxAttempts: 1 });
  await queue.enqueueMany(database.db, once, new Array(10).fill({}));
  const beginning = hanging();
  let isHanging = false;
  atFaultPoints(async (at) => {
    if (at !== 'begin: written' || isHanging) return;
    isHanging = true;
    await beginning.answer;
  });
  const worker = createWorker(database.db, {
    queue,
    shutdownTimeoutMs: 0,
    handlers: [handle(once, () => undefined)],
  });
  worker.on('error', () => undefined);
  await worker.start();
  await until(() => isHanging);
  await worker.stop();
  beginning.end();
  const rows = await database.db.select().from(queueJobs);
  expect(rows.length).toBeGreaterThan(0);
  for (const { workerId, attempt, claimedAt } of rows) {
    expect({ workerId, attempt, claimedAt }).toEqual({ workerId: null, attempt: 0, claimedAt: null });
  }
});

test('a look for requests that hangs keeps no stop beyond its bound, and nothing follows it', async () => {
  const [app] = await database.connect();
  if (app === undefined) throw new Error('no connection');
  const worker = createWorker(database.db, {
    queue,
    // Then it looks twice a second.
    listen: false,
    shutdownTimeoutMs: 0,
    handlers: [handle(defineJob('idle'), () => undefined)],
  });
  worker.on('error', () => undefined);
  await worker.start();
  const hangs = async () =>
    (
      await database.client`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%queue_pauses%'`
    ).length > 0;
  await app.client`begin`;
  await app.client`lock table queue_pauses in access exclusive mode`;
  await until(hangs);
  expect(await runningMsUntil(worker.stop())).toBeLessThan(5_000);
  expect(await hangs()).toBe(true);
  const sent = vi.spyOn(database.client, 'unsafe');
  await app.client`rollback`;
  await until(async () => !(await hangs()));
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect(sent.mock.calls.map(([text]) => text)).toEqual([]);
});

test('a stop that has to wait for a start keeps its bound where the database then falls silent', async () => {
  const [before, after] = await database.connect(2);
  if (before === undefined || after === undefined) throw new Error('no connections');
  const waiting = async (text: string) => {
    const rows = await database.client`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query ilike ${`%${text}%`}`;
    return rows.length > 0;
  };
  const idle = handle(defineJob('idle'), () => undefined);
  const lock = 'lock table queue_workers in share row exclusive mode';
  const worker = createWorker(database.db, { queue, shutdownTimeoutMs: 0, handlers: [idle] });
  worker.on('error', () => undefined);
  await before.client`begin`;
  await before.client.unsafe(lock);
  const starting = worker.start();
  await until(() => waiting('insert into "queue_workers"'));
  // Behind the registration, and before all that follows it.
  await after.client`begin`;
  const locked = after.client.unsafe(lock).execute();
  await until(() => waiting(lock));
  const stoppedMs = runningMsUntil(worker.stop());
  // Most of the three seconds that a stop waits for a start. If it is longer, the start removes its worker itself.
  await delay(2_500);
  await before.client`rollback`;
  await locked;
  await until(() => waiting('delete from "queue_workers"'));
  expect(await stoppedMs).toBeLessThan(5_000);
  await after.client`rollback`;
  await starting;
});
