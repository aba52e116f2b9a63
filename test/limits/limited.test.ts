import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  limitsIn,
  unvalidated,
  type WorkerEvents,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 8 });
const queue = createQueue({
  limits: limitsIn(control, {
    few: { concurrency: 3 },
    kinds: { kinds: { slow: { concurrency: 2 } } },
    open: {},
  }),
});
const job = (kind: string, name: string) =>
  defineJob(kind, { payload: unvalidated<{ ms: number }>(), queue: name });
const few = job('few', 'few');
const slow = job('slow', 'kinds');
const fast = job('fast', 'kinds');
const open = job('open', 'open');

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers, queue_limits, queue_usage`;
});

function working(count: number, concurrency = 10) {
  const running = new Map<string, number>();
  const most = new Map<string, number>();
  const begun: string[] = [];
  const errors: WorkerEvents['error'][0][] = [];
  const handlers = [few, slow, fast, open].map((definition) =>
    handle(definition, async ({ payload, signal }) => {
      const { kind } = definition;
      begun.push(kind);
      running.set(kind, (running.get(kind) ?? 0) + 1);
      most.set(kind, Math.max(most.get(kind) ?? 0, running.get(kind) ?? 0));
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, payload.ms);
        signal.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve();
        });
      });
      running.set(kind, (running.get(kind) ?? 0) - 1);
    }),
  );
  const queues = Object.fromEntries(['few', 'kinds', 'open'].map((name) => [name, { concurrency }]));
  const workers = Array.from({ length: count }, () => {
    const worker = createWorker(database.db, { queue, handlers, queues });
    worker.on('error', (error) => errors.push(error));
    onTestFinished(() => worker.stop());
    return worker;
  });
  return { running, most, begun, errors, handlers, queues, workers };
}

const many = (count: number, ms: number) => Array.from({ length: count }, () => ({ payload: { ms } }));
const left = async () => (await database.client`select from queue_jobs`).length;

describe('a limit of a queue', () => {
  test.each([1, 2, 5])('%i workers of one process reach it and never exceed it', async (count) => {
    const { workers, most, errors } = working(count);
    await Promise.all(workers.map((worker) => worker.start()));
    await queue.enqueueMany(database.db, few, many(60, 30));
    await until(async () => (await left()) === 0);
    expect(most.get('few')).toBe(3);
    expect(errors).toEqual([]);
    await until(async () => {
      const [row] = await database.client`select leases = '{}' as empty from queue_usage where queue = 'few'`;
      return row?.empty;
    });
  });

  test('the first job waits for hardly more than one round trip', async () => {
    const { workers } = working(1);
    await Promise.all(workers.map((worker) => worker.start()));
    for (let n = 0; n < 5; n++) {
      const startMs = performance.now();
      await queue.enqueue(database.db, few, { ms: 0 });
      await until(async () => (await left()) === 0, { intervalMs: 1 });
      console.log('first', performance.now() - startMs);
      const s = performance.now();
      await queue.enqueue(database.db, open, { ms: 0 });
      await until(async () => (await left()) === 0, { intervalMs: 1 });
      console.log('open', performance.now() - s);
      await new Promise((r) => setTimeout(r, 700));
    }
  });
});

describe('a limit of a kind', () => {
  test('a backlog that must wait is not in the way of other kinds', async () => {
    const { workers, most, begun, errors } = working(1);
    await queue.enqueueMany(database.db, slow, many(200, 50));
    await queue.enqueueMany(database.db, fast, many(100, 5));
    await Promise.all(workers.map((worker) => worker.start()));
    await until(() => begun.filter((kind) => kind === 'fast').length === 100);
    expect(begun.filter((kind) => kind === 'slow').length).toBeLessThan(60);
    await until(async () => (await left()) === 0);
    expect(most.get('slow')).toBe(2);
    expect(errors).toEqual([]);
  });
});
