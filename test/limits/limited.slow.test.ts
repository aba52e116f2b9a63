import { setTimeout } from 'node:timers/promises';
import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  handle,
  limitsIn,
  unvalidated,
  type WorkerEvents,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
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
afterEach(() => atFaultPoints());
beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers, queue_limits, queue_usage`;
});

function working(count: number, concurrency = 10) {
  const running = new Map<string, number>();
  const most = new Map<string, number>();
  const begun: string[] = [];
  const aborted: string[] = [];
  const errors: WorkerEvents['error'][0][] = [];
  const long = new AbortController();
  const handlers = [few, slow, fast, open].map((definition) =>
    handle(definition, async ({ payload, signal }) => {
      const { kind } = definition;
      begun.push(kind);
      signal.addEventListener('abort', () => aborted.push(kind));
      running.set(kind, (running.get(kind) ?? 0) + 1);
      most.set(kind, Math.max(most.get(kind) ?? 0, running.get(kind) ?? 0));
      await new Promise<void>((resolve) => {
        const timer = globalThis.setTimeout(resolve, payload.ms);
        AbortSignal.any([signal, long.signal]).addEventListener('abort', () => {
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
  return { running, most, begun, aborted, errors, handlers, queues, workers, long };
}

const many = (count: number, ms: number) => Array.from({ length: count }, () => ({ payload: { ms } }));
async function leased(name: string): Promise<number> {
  const { limits } = await queue.limits.list(database.db, { queue: name });
  return limits[0]?.slots ?? 0;
}
const left = async () => (await database.client`select from queue_jobs`).length;

describe('a limit of a queue', () => {
  test.each([1, 2, 5])('%i workers of one process reach it and never exceed it', async (count) => {
    const { workers, running, most, errors, long } = working(count);
    await Promise.all(workers.map((worker) => worker.start()));
    // They end together: short ones might never run at once while the machine is busy.
    await queue.enqueueMany(database.db, few, many(3, 600_000));
    await until(() => running.get('few') === 3);
    await queue.enqueueMany(database.db, few, many(60, 30));
    long.abort();
    await until(async () => (await left()) === 0);
    expect(most.get('few')).toBe(3);
    expect(errors).toEqual([]);
    await until(async () => {
      const [row] = await database.client`select leases = '{}' as empty from queue_usage where queue = 'few'`;
      return row?.empty;
    });
  });

  test('20 workers share it, and each of them gets some', async () => {
    const { workers, most, errors } = working(20, 2);
    const claimed = new Set<number>();
    for (const [n, worker] of workers.entries()) worker.on('completed', () => claimed.add(n));
    await Promise.all(workers.map((worker) => worker.start()));
    await queue.enqueueMany(database.db, few, many(6_000, 20));
    await until(() => claimed.size === 20, { timeoutMs: 60_000 });
    expect(most.get('few')).toBe(3);
    expect(errors).toEqual([]);
    await database.client`delete from queue_jobs where worker_id is null`;
  }, 240_000);

  test('the first job of an idle queue is claimed, leased and begun by three statements', async () => {
    const { workers } = working(1);
    const [worker] = workers;
    await worker?.start();
    await until(async () => (await database.client`select from queue_usage`).length === 0);
    await queue.enqueue(database.db, few, { ms: 0 });
    await until(async () => (await left()) === 0);
    // The row is there from now on.
    await until(async () => (await leased('few')) === 0);
    const rounds: { readonly asked: number; readonly gapMs: number }[] = [];
    // It does not ask twice, and does not sleep in between.
    const isDirect = () => rounds.some(({ asked, gapMs }) => asked === 1 && gapMs < 50);
    let taken: number[] = [];
    let began = 0;
    atFaultPoints(async (point) => {
      if (point === 'lease: taken' && began === 0) taken.push(performance.now());
    });
    worker?.on('began', () => {
      began = performance.now();
    });
    // A machine that is short of processors may hold one of them up; then it asks for the slot again.
    do {
      taken = [];
      began = 0;
      await queue.enqueue(database.db, few, { ms: 0 });
      await until(() => began > 0);
      rounds.push({ asked: taken.length, gapMs: began - (taken[0] ?? 0) });
      await until(async () => (await left()) === 0);
      await until(async () => (await leased('few')) === 0);
    } while (!isDirect() && rounds.length < 5);
    expect(rounds).toSatisfy(isDirect);
  });

  test('costs a few statements a second, and none for each job', async () => {
    const { workers, begun } = working(1);
    let taken = 0;
    atFaultPoints(async (point) => {
      if (point === 'lease: taken') taken++;
    });
    await queue.enqueueMany(database.db, few, many(5_000, 0));
    const startMs = performance.now();
    await workers[0]?.start();
    await until(() => begun.length === 5_000);
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(20 + (performance.now() - startMs) / 100);
  });

  test('a drain heeds it, and goes on when slots are free', async () => {
    const { workers, most, handlers, queues, begun } = working(1);
    await workers[0]?.start();
    await queue.enqueueMany(database.db, few, many(3, 1_500));
    await until(() => begun.length === 3);
    await queue.enqueueMany(database.db, few, many(6, 10));
    const [connection = database] = await database.connect();
    const result = await drain(connection.db, { queue, handlers, queues, deadlineMs: 20_000 });
    expect(result.empty).toBe(true);
    expect(most.get('few')).toBe(3);
    await until(async () => (await left()) === 0);
  });

  test('a worker that stops gives its slots back, those that it does not use while handlers end', async () => {
    const { workers, begun, long } = working(1);
    const [worker] = workers;
    await worker?.start();
    await queue.enqueueMany(database.db, few, [...many(2, 10), ...many(1, 600_000)]);
    await until(() => begun.length === 3);
    const stopped = worker?.stop();
    await until(async () => (await leased('few')) === 1);
    long.abort();
    await stopped;
    expect(await leased('few')).toBe(0);
  });
});

describe('a change at run time', () => {
  test('is heeded both ways, and interrupts nobody', async () => {
    const { workers, running, most, aborted, errors } = working(3);
    await Promise.all(workers.map((worker) => worker.start()));
    // They take longer than a claim on a busy machine: shorter ones might never run so many at once.
    await queue.enqueueMany(database.db, few, many(5_000, 500));
    await until(() => most.get('few') === 3);
    await queue.limits.set(database.db, { queue: 'few' }, { concurrency: 12 });
    await until(() => most.get('few') === 12);
    await queue.limits.set(database.db, { queue: 'few' }, { concurrency: 2 });
    // So few run for a moment also when many end together.
    const isLowered = async () => (await leased('few')) === 2 && running.get('few') === 2;
    await until(isLowered);
    most.clear();
    await setTimeout(1_000);
    await until(() => most.get('few') === 2);
    await queue.limits.set(database.db, { queue: 'few' }, null);
    await until(() => most.get('few') === 3);
    expect(aborted).toEqual([]);
    expect(errors).toEqual([]);
    await database.client`delete from queue_jobs where worker_id is null`;
  }, 240_000);

  test('gives a limit to a queue that declares none, and takes it away', async () => {
    const { workers, running, most } = working(2);
    await Promise.all(workers.map((worker) => worker.start()));
    await queue.enqueueMany(database.db, open, many(5_000, 500));
    await until(() => most.get('open') === 20);
    expect(await database.client`select from queue_usage where queue = 'open'`).toHaveLength(0);
    await queue.limits.set(database.db, { queue: 'open' }, { concurrency: 4 });
    const isLowered = async () => (await leased('open')) === 4 && running.get('open') === 4;
    await until(isLowered);
    most.clear();
    await setTimeout(1_000);
    await until(() => most.get('open') === 4);
    await queue.limits.set(database.db, { queue: 'open' }, null);
    await until(() => most.get('open') === 20);
    await until(async () => (await leased('open')) === 0);
    await database.client`delete from queue_jobs where worker_id is null`;
  }, 240_000);

  test('in an open transaction holds up nobody: the old limit holds until it commits', async () => {
    const { workers, begun, most, long } = working(1);
    await database.db.transaction(async (tx) => {
      await queue.limits.set(tx, { queue: 'few' }, { concurrency: 1 });
      await workers[0]?.start();
      // They end together: short ones might never run at once while the machine is busy.
      await queue.enqueueMany(database.db, few, many(3, 600_000));
      await until(() => most.get('few') === 3);
      await queue.enqueueMany(database.db, few, many(20, 5));
      long.abort();
      await until(() => begun.length === 23);
    });
    expect(most.get('few')).toBe(3);
    await until(async () => (await leased('few')) === 0);
    most.clear();
    await queue.enqueueMany(database.db, few, many(20, 20));
    await until(async () => (await left()) === 0);
    expect(most.get('few')).toBe(1);
  });
});

describe('what goes wrong', () => {
  test('answers that are lost let no more run, and no slot leak', async () => {
    const { workers, most, errors } = working(3);
    let taken = 0;
    atFaultPoints(async (point) => {
      if (point === 'lease: taken' && ++taken % 3 === 0) throw new Error('the connection broke');
    });
    await Promise.all(workers.map((worker) => worker.start()));
    // Until all slots are taken at once, however many answers are lost before.
    const enoughJobs = async () => {
      if ((await left()) < 10) await queue.enqueueMany(database.db, few, many(60, 100));
      return most.get('few') === 3 && taken > 3;
    };
    await until(enoughJobs);
    await until(async () => (await left()) === 0);
    expect(most.get('few')).toBe(3);
    expect(taken).toBeGreaterThan(3);
    expect(new Set(errors.map(({ during }) => during))).toEqual(new Set(["taking slots of 'few'"]));
    atFaultPoints();
    await until(async () => (await leased('few')) === 0);
  }, 240_000);

  test('a worker that is wrongly declared gone begins nothing beyond the limit once it is back', async () => {
    const running = { first: 0, second: 0 };
    const begun: { readonly by: keyof typeof running; readonly own: number; readonly all: number }[] = [];
    const long = new AbortController();
    const [first, second] = (['first', 'second'] as const).map((by) => {
      const handler = handle(few, async ({ payload: { ms }, signal }) => {
        running[by]++;
        begun.push({ by, own: running[by], all: running.first + running.second });
        await setTimeout(ms, undefined, { signal: AbortSignal.any([signal, long.signal]) }).catch(() => {});
        running[by]--;
      });
      const queues = { few: { concurrency: 10 } };
      const worker = createWorker(database.db, { queue, log: false, handlers: [handler], queues });
      onTestFinished(() => worker.stop());
      return worker;
    });
    onTestFinished(() => long.abort());
    const workerIds = async () =>
      (await database.client<{ id: number }[]>`select id::int from queue_workers`).map(({ id }) => id);
    await first?.start();
    const [id = 0] = await workerIds();
    await queue.enqueueMany(database.db, few, many(3, 600_000));
    await until(() => running.first === 3);
    await second?.start();
    await queue.enqueueMany(database.db, few, many(500, 50));

    // It is back, and does not know it yet; while it stands there, it cannot come back once more.
    let isBack = false;
    let tell: () => void = () => undefined;
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    atFaultPoints(async (point) => {
      if (point !== 'liveness: returned') return;
      isBack = true;
      await told;
    });
    await database.client`delete from queue_workers where id = ${id}`;
    await until(() => isBack);
    await database.client`delete from queue_workers where id = ${id}`;
    await until(() => begun.some(({ by, own }) => by === 'second' && own === 3));
    // What it still runs is beyond the limit.
    expect(Math.max(...begun.map(({ all }) => all))).toBe(6);

    const known = begun.length;
    atFaultPoints();
    tell();
    // The others have seen that there are too many, and have let go of what they had.
    await until(async () => {
      const isRegistered = (await workerIds()).length === 2;
      const [usage] = await database.client<{ leases: Record<string, [has: number]> }[]>`
        select leases from queue_usage where queue = 'few'`;
      const leases = Object.entries(usage?.leases ?? {}).map(([of, [has]]) => ({ of: Number(of), has }));
      const all = leases.reduce((sum, { has }) => sum + has, 0);
      const own = leases.find(({ of }) => of === id)?.has ?? 0;
      return isRegistered && all <= 3 && running.first <= own && running.second <= all - own;
    });
    const covered = begun.length;
    await database.client`delete from queue_jobs where worker_id is null`;
    long.abort();
    // As many as may run at once, and no more.
    await until(async () => {
      if ((await left()) < 10) await queue.enqueueMany(database.db, few, many(60, 100));
      return begun.slice(covered).some(({ all }) => all === 3);
    });
    await until(async () => (await left()) === 0);
    expect(begun.slice(known).filter(({ by, all }) => by === 'first' && all > 3)).toEqual([]);
    expect(Math.max(...begun.slice(covered).map(({ all }) => all))).toBe(3);
    // Nobody has declared this one gone.
    expect(Math.max(...begun.flatMap(({ by, own }) => (by === 'second' ? own : [])))).toBe(3);
  }, 240_000);

  test('the slots of a worker are free in the statement that removes its row', async () => {
    const { workers, begun } = working(1);
    await database.client`insert into queue_workers (id, name, queues) overriding system value values (999, 'dead', '[]')`;
    await database.client`insert into queue_usage (queue, leases) values ('few', '{"999": [3, 3, 0]}')`;
    await workers[0]?.start();
    await queue.enqueueMany(database.db, few, many(5, 5));
    await setTimeout(1_000);
    expect(begun).toEqual([]);
    await database.client`delete from queue_workers where id = 999`;
    await until(() => begun.length === 5);
    const [row] = await database.client`select leases from queue_usage`;
    expect(row?.leases).not.toHaveProperty('999');
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
    // Five seconds at least: two at once for 50 ms each.
    await until(async () => (await left()) === 0, { timeoutMs: 50_000 });
    expect(most.get('slow')).toBe(2);
    expect(errors).toEqual([]);
  });
});
