import { createQueue, defineJob, type QueueLimits, unvalidated } from 'drizzle-queue';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { depth } from '../support/depth.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';
import { Watcher } from './watcher.ts';

const database = useTestDatabase();
const queue = createQueue();
const limits: Record<string, QueueLimits> = {
  whole: { concurrency: 10 },
  kinds: { kinds: { rare: { concurrency: 5 } } },
};
const job = (kind: string, name: string) =>
  defineJob(kind, { queue: name, payload: unvalidated<{ ms: number }>(), maxAttempts: 100 });
const whole = job('whole', 'whole');
const rare = job('rare', 'kinds');
const common = job('common', 'kinds');

const PROCESSES = 12;
const MS = depth(12_000, 30_000);

beforeAll(async () => {
  await addControlTables(database);
  await Fleet.createLedger(database);
});
beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers, queue_limits, queue_usage, ledger`;
});

/** When a race may end: the machine may have been too busy to let all run at once. */
function overWhen(watcher: Watcher, name: string, limit: number) {
  const endMs = performance.now() + MS;
  const reached = () =>
    watcher.most.get(name)?.running === limit && watcher.shareWith('leased', name, limit * 0.8) > 0.5;
  return () => performance.now() > endMs + (reached() ? 0 : 60_000);
}

async function watched(jobs: { kind: string; queue: string }[]) {
  const fleet = new Fleet(database, { limits, jobs, concurrency: 4 });
  onTestFinished(() => fleet.abandon());
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('no connection');
  const watcher = new Watcher(connection);
  await fleet.start(PROCESSES);
  watcher.start();
  onTestFinished(() => watcher.stop());
  return { fleet, watcher };
}

const entries = (count: number) =>
  Array.from({ length: count }, () => ({ payload: { ms: 50 + Math.floor(Math.random() * 300) } }));

test('12 processes that die at random never exceed the limit of a queue, and reach it', {
  timeout: MS + 120_000,
}, async () => {
  const { fleet, watcher } = await watched([{ kind: 'whole', queue: 'whole' }]);
  await queue.enqueueMany(database.db, whole, entries(MS / 3));
  await fleet.decimate(overWhen(watcher, 'whole', 10), 1_000);
  expect(fleet.deaths).toBeGreaterThan(3);
  expect(watcher.looks).toBeGreaterThan(MS / 100);
  expect(watcher.most.get('whole')).toEqual({ running: 10, leased: 10 });
  expect(await fleet.left()).toBeGreaterThan(0);
  expect(watcher.shareWith('leased', 'whole', 8)).toBeGreaterThan(0.5);
  await database.client`delete from queue_jobs where worker_id is null`;
  await until(async () => (await fleet.left()) === 0, { timeoutMs: 60_000 });
  expect(new Set(await fleet.stop())).toEqual(new Set([0]));
  expect(fleet.output).not.toMatch(/lost|error/);
  expect(watcher.most.get('whole')).toEqual({ running: 10, leased: 10 });
});

test('the same of a kind, beside others of its queue', { timeout: MS + 120_000 }, async () => {
  const { fleet, watcher } = await watched([
    { kind: 'rare', queue: 'kinds' },
    { kind: 'common', queue: 'kinds' },
  ]);
  // Those that must wait come first.
  await queue.enqueueMany(database.db, rare, entries(MS / 3));
  await queue.enqueueMany(database.db, common, entries(MS / 3));
  await fleet.decimate(overWhen(watcher, 'kinds/rare', 5), 1_000);
  expect(watcher.most.get('kinds/rare')).toEqual({ running: 5, leased: 5 });
  // Slots that the kind must not use are the others'.
  expect(watcher.most.get('kinds/common')?.running).toBeGreaterThan(20);
  await database.client`delete from queue_jobs where worker_id is null`;
  await until(async () => (await fleet.left()) === 0, { timeoutMs: 60_000 });
  expect(new Set(await fleet.stop())).toEqual(new Set([0]));
  expect(fleet.output).not.toMatch(/lost|error/);
  expect(watcher.most.get('kinds/rare')).toEqual({ running: 5, leased: 5 });
});
