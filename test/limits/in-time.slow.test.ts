import { setTimeout as delay } from 'node:timers/promises';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import postgres from 'postgres';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { clearGroups } from '../queries/support/groups.ts';
import { addControlTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 6 });
const HOUR_MS = 3_600_000;
const queue = createQueue({
  limits: limitsIn(control, {
    few: { concurrency: 3 },
    many: { concurrency: 1_000 },
    rated: { rate: { limit: 2, perMs: HOUR_MS } },
    grouped: { groups: {} },
  }),
});
type Name = 'few' | 'many' | 'rated' | 'grouped';

beforeAll(() => addControlTables(database));
beforeEach(() => clearGroups(database.client));

interface WorkOptions {
  readonly listen?: boolean;
  readonly url?: string;
  readonly concurrency?: number;
}

/** A worker of one queue; when its handlers began, and how often it looked at its limits. */
async function work(
  name: Name,
  handler: () => unknown,
  { listen = true, url = database.url, concurrency = 10 }: WorkOptions = {},
) {
  const job = defineJob(name, { payload: unvalidated<null>(), queue: name });
  const seen = { looks: 0, begun: 0 };
  const client = postgres(url, {
    max: 5,
    fetch_types: false,
    onnotice: () => undefined,
    debug: (_, text) => {
      if (text.includes('i.place::float8 as place')) seen.looks++;
    },
  });
  const worker = createWorker(drizzle({ client }), {
    queue,
    handlers: [
      handle(job, async () => {
        seen.begun++;
        await handler();
      }),
    ],
    queues: { [name]: { concurrency } },
    listen,
    log: false,
  });
  onTestFinished(async () => {
    await worker.stop();
    await client.end({ timeout: 0 });
  });
  const heard = new Promise<void>((resolve) => {
    if (listen) worker.on('listening', () => resolve());
    else resolve();
  });
  await worker.start();
  await heard;
  const enqueue = (count: number) =>
    queue.enqueueMany(
      database.db,
      job,
      Array.from({ length: count }, () => ({ payload: null })),
    );
  /** Waits until it has looked so many times more, and most probably knows the answer. */
  const looked = async (times = 1) => {
    const before = seen.looks;
    await until(() => seen.looks >= before + times, { intervalMs: 2 });
    await delay(100);
  };
  return { seen, enqueue, looked, id: await idOf() };
}

async function idOf(): Promise<number> {
  const [row] = await database.client<{ id: number }[]>`
    select max(id)::int4 as id from queue_workers where seen_at < now() + interval '1 minute'`;
  return Number(row?.id);
}

/** Other workers, which live and do nothing. */
async function addOthers(count: number): Promise<number[]> {
  const rows = await database.client<{ id: number }[]>`
    insert into queue_workers (name, queues, seen_at)
    select 'other', '[]', now() + interval '1 hour' from generate_series(1, ${count}) returning id::int4 as id`;
  return rows.map(({ id }) => id);
}

/** Lets workers have so many slots each. */
async function lease(name: Name, ids: readonly number[], slots: number): Promise<void> {
  await database.client`
    insert into queue_usage (queue) values (${name}) on conflict (queue, kind) do nothing`;
  await database.client`
    update queue_usage set leases = leases || (
      select jsonb_object_agg(id::text, jsonb_build_array(${slots}::int4, ${slots}::int4, 0))
      from unnest(${ids}::int8[]) as id
    ) where queue = ${name}`;
}

/** What a worker has of a limit, and what it could use. */
async function leaseOf(name: Name, id: number): Promise<{ has: number; wants: number }> {
  const [row] = await database.client<{ lease: [number, number] | null }[]>`
    select leases -> ${String(id)} as lease from queue_usage where queue = ${name}`;
  const [has = 0, wants = 0] = row?.lease ?? [];
  return { has, wants };
}

const quickly = <T>(condition: () => T | Promise<T>) =>
  runningMsUntil(until(condition, { intervalMs: 5, timeoutMs: 60_000 }));

/** The least time of a few rounds, all of them until one is short: a busy machine may hold up some. */
async function shortest(mostMs: number, round: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 5 && least >= mostMs; n++) least = Math.min(least, await round());
  return least;
}

/** The middle one of three times. Each round begins when it happens to, between two looks. */
async function middle(round: () => Promise<number>): Promise<number> {
  const times = [await round(), await round(), await round()];
  return times.toSorted((a, b) => a - b)[1] ?? Number.NaN;
}

describe('a limit that is set at run time', () => {
  /** A worker whose slots are all in use; each further slot lets one more job begin. */
  async function full(name: 'few' | 'many', others: number, listen: boolean) {
    const { opened, open } = gate();
    if (others > 0) await lease(name, await addOthers(others), 1);
    let concurrency = others + 1;
    await queue.limits.set(database.db, { queue: name }, { concurrency });
    const worker = await work(name, () => opened, { listen });
    // Before it stops: hooks of a test run in the opposite order.
    onTestFinished(open);
    await worker.enqueue(10);
    await until(() => worker.seen.begun === 1);
    return async ({ afterLook }: { readonly afterLook: boolean }) => {
      if (afterLook) await worker.looked();
      const { begun } = worker.seen;
      await queue.limits.set(database.db, { queue: name }, { concurrency: ++concurrency });
      return await quickly(() => worker.seen.begun > begun);
    };
  }

  test('is heeded at once by a worker that is notified', async () => {
    const raise = await full('few', 0, true);
    // Its next look of its own accord is as far away as it can be.
    expect(await shortest(500, () => raise({ afterLook: true }))).toBeLessThan(500);
  });

  test.each([
    ['few', 0],
    ['many', 900],
  ] as const)('of %s beside %i others within 5 seconds without notifications', async (name, others) => {
    const raise = await full(name, others, false);
    expect(await middle(() => raise({ afterLook: false }))).toBeLessThan(5_000);
  });
});

test('a rate that is used up is looked at once a second', async () => {
  const worker = await work('rated', () => undefined, { listen: false });
  await worker.enqueue(20);
  let limit = 2;
  await until(() => worker.seen.begun === limit);
  await worker.looked();
  const { looks } = worker.seen;
  const startMs = performance.now();
  const raised = await shortest(1_500, async () => {
    await worker.looked();
    await queue.limits.set(database.db, { queue: 'rated' }, { rate: { limit: ++limit, perMs: HOUR_MS } });
    return await quickly(() => worker.seen.begun === limit);
  });
  expect(raised).toBeLessThan(1_500);
  // A quarter less, since workers do not all look at the same time.
  expect(worker.seen.looks - looks).toBeLessThanOrEqual(1 + (performance.now() - startMs) / 750);
});

test('an idle worker looks once in four seconds whether a limit has changed', async () => {
  const worker = await work('few', () => undefined);
  await worker.looked();
  const startMs = performance.now();
  await worker.looked(3);
  expect(performance.now() - startMs).toBeGreaterThan(3 * 3_000);
});

test('the slots of a worker that is declared gone are taken by others within two seconds', async () => {
  const worker = await work('few', () => undefined);
  const takenOver = await shortest(2_000, async () => {
    await until(async () => (await leaseOf('few', worker.id)).has === 0);
    const [gone = 0] = await addOthers(1);
    await lease('few', [gone], 3);
    const { begun } = worker.seen;
    await worker.enqueue(1);
    await until(async () => (await leaseOf('few', worker.id)).wants > 0);
    expect(worker.seen.begun).toBe(begun);
    await database.client`delete from queue_workers where id = ${gone}`;
    return await quickly(() => worker.seen.begun > begun);
  });
  expect(takenOver).toBeLessThan(2_000);
});

test.each([
  ['few', 0, 1_500],
  ['many', 900, 5_000],
] as const)(
  'where too many slots of %s are taken, a worker beside %i others sees it and begins no job',
  async (name, others, mostMs) => {
    const rest = others === 0 ? [] : await addOthers(others);
    if (others > 0) await lease(name, rest, 1);
    const [back = 0] = await addOthers(1);
    await queue.limits.set(database.db, { queue: name }, { concurrency: others + 3 });
    const worker = await work(name, () => delay(20));
    await worker.enqueue(5_000);
    const stopped = await middle(async () => {
      await lease(name, [back], 0);
      await until(async () => (await leaseOf(name, worker.id)).has > 0);
      const { begun } = worker.seen;
      await until(() => worker.seen.begun > begun + 10);
      await worker.looked();
      // It still runs what it had, and has just learned that it is known.
      await lease(name, [back], 10);
      const time = await quickly(async () => (await leaseOf(name, worker.id)).has === 0);
      const stoppedAt = worker.seen.begun;
      await worker.looked(1);
      expect(worker.seen.begun).toBe(stoppedAt);
      return time;
    });
    expect(stopped).toBeLessThan(mostMs);
    await database.client`delete from queue_jobs where worker_id is null`;
  },
);

test('without a database handlers go on, and further jobs begin while the worker has slots for them', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  onTestFinished(async () => {
    proxy.weather = 'fine';
    await proxy.close();
  });
  let ended = 0;
  const worker = await work(
    'few',
    async () => {
      await delay(10);
      ended++;
    },
    { url: proxy.url(database.url) },
  );
  await worker.enqueue(5_000);
  // Until it had claimed some ahead when the connections broke.
  await until(async () => {
    const { begun } = worker.seen;
    await until(() => worker.seen.begun > begun + 20, { intervalMs: 1 });
    proxy.weather = 'refusing';
    proxy.cut();
    const atCut = { begun: worker.seen.begun, ended };
    await delay(300);
    proxy.weather = 'fine';
    return worker.seen.begun > atCut.begun && ended > atCut.ended;
  });
  await database.client`delete from queue_jobs where worker_id is null`;
});

test('jobs that were inserted without a note are looked for in a thousand groups every half minute', async () => {
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts, group_key)
    select 'grouped', 'grouped', 'null', 1, to_char(n, '0000') from generate_series(1, 1500) as n`;
  const startMs = performance.now();
  const worker = await work('grouped', () => undefined);
  await until(() => worker.seen.begun >= 1_000);
  expect(await quickly(() => worker.seen.begun > 1_000)).toBeLessThan(45_000);
  // Six times five seconds, a quarter less at the least.
  expect(performance.now() - startMs).toBeGreaterThan(20_000);
  await until(() => worker.seen.begun === 1_500);
});
