import { setTimeout as delay } from 'node:timers/promises';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, limitsIn, type QueueLimits } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import postgres from 'postgres';
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { Serial } from '../../src/features/limits/settings/limit-settings.ts';
import { Audit } from '../limits/audit.ts';
import { Fleet, type FleetOptions } from '../limits/fleet.ts';
import { type GroupLoad, groupJob, Producer } from '../limits/group-load.ts';
import { GroupWatcher } from '../limits/group-watcher.ts';
import type { GroupWork } from '../limits/group-work.ts';
import { misplaced, mostAtOnce, mostInWindow, overlaps } from '../limits/order.ts';
import { addControlTables } from '../support/control-tables.ts';
import { createDatabase, migrateDatabase } from '../support/databases.ts';
import { startPostgres } from '../support/embedded-postgres.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { hasPgBouncer, startPgBouncer } from './pgbouncer.ts';
import { printTimes, startRespiteIsOver } from './recovery.ts';
import { size } from './size.ts';

const database = useTestDatabase();
const audit = new Audit(database);

const RATE = { limit: 10, perMs: 2_000 };
const ORDERED = ['a', 'b', 'c', 'd'];
const TENANTS = ['t0', 't1', 't2'];
const limits: Record<string, QueueLimits> = {
  order: { groups: { serial: 'end' } },
  tenants: { groups: { concurrency: 2 } },
  rated: { groups: { rate: RATE } },
};
const groupedFleet: FleetOptions = {
  limits,
  jobs: Object.keys(limits).map((name) => ({ kind: name, queue: name })),
  concurrency: 4,
  program: 'limits/fixtures/grouped-worker.ts',
};
const queue = createQueue({ limits: limitsIn(control, limits) });
const plain = (group: string, ms: number): GroupWork => ({
  group,
  ms,
  snoozes: 0,
  fails: 0,
  discards: false,
});
const loads: readonly GroupLoad[] = [
  {
    queue: 'order',
    groups: ORDERED,
    waiting: 15,
    work: () => ({
      ms: Math.floor(Math.random() * 60),
      snoozes: 0,
      fails: Math.random() < 0.1 ? 1 : 0,
      discards: Math.random() < 0.05,
    }),
  },
  { queue: 'tenants', groups: TENANTS, waiting: 10, work: () => plain('', 100) },
  { queue: 'rated', groups: ['r'], waiting: 15, work: () => plain('', 20) },
];

let fleets: Fleet[] = [];
beforeAll(async () => {
  await addControlTables(database);
  await Fleet.createLedger(database);
  await audit.create();
});
beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers, queue_limits, queue_usage, queue_groups, queue_holds,
    queue_notes, ledger, starts, departures, actions`;
});
afterEach(() => {
  for (const fleet of fleets) fleet.abandon();
  fleets = [];
});

async function start(count: number, options: Partial<FleetOptions> = {}): Promise<Fleet> {
  const fleet = new Fleet(database, { ...groupedFleet, ...options });
  fleets.push(fleet);
  await fleet.start(count);
  return fleet;
}

async function settled(): Promise<void> {
  const left = () =>
    database.client`select queue, group_key, worker_id, count(*)::int as n from queue_jobs group by 1, 2, 3`;
  await until(async () => (await left()).length === 0, { timeoutMs: 60_000, intervalMs: 50 }).catch(
    async () => {
      throw new Error(`not settled: ${JSON.stringify(await left())}`);
    },
  );
}

/** Keeps all three queues busy while something happens; then everything must be as it was promised. */
async function underLoad(fleet: Fleet, happen: (producer: Producer) => Promise<void>): Promise<void> {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('no connection');
  const watcher = new GroupWatcher(connection);
  for (const tenant of TENANTS) watcher.limit(`tenants/${tenant}`, 2);
  const producer = new Producer(database, queue, loads);
  await producer.fill();
  watcher.start();
  producer.start();
  try {
    await happen(producer);
    await until(() => areReached(), { intervalMs: 200 });
  } finally {
    await producer.end();
  }
  await settled();
  await watcher.stop();
  expect(new Set(await fleet.stop())).toEqual(new Set([0]));
  await expectDone(producer);
  expect(watcher.exceeded).toEqual([]);
  await expectLimits();
}

/** Every job has a result. */
async function expectDone({ enqueued }: Producer): Promise<void> {
  const done = await database.client<{ id: string }[]>`select job_id as id from queue_results`;
  const inOrder = (ids: readonly number[]) => [...ids].sort((a, b) => a - b);
  expect(inOrder(done.map(({ id }) => Number(id)))).toEqual(inOrder(enqueued));
}

/** Whether the limit of each group, and the rate, were reached: on a busy machine that takes its time. */
async function areReached(books = audit): Promise<boolean> {
  const tenants = await books.runs('tenants');
  const rated = (await books.starts('rated')).get('r') ?? [];
  return (
    TENANTS.every((tenant) => mostAtOnce(tenants.get(tenant) ?? []) >= 2) &&
    mostInWindow(rated, RATE.perMs) >= RATE.limit
  );
}

/** No limit of a group was ever exceeded, each was reached, and the order was kept. */
async function expectLimits(books = audit): Promise<void> {
  for (const runs of (await books.runs('order')).values()) {
    expect(overlaps(runs)).toEqual([]);
    expect(misplaced(runs)).toEqual([]);
  }
  const tenants = await books.runs('tenants');
  for (const tenant of TENANTS) expect([tenant, mostAtOnce(tenants.get(tenant) ?? [])]).toEqual([tenant, 2]);
  const rated = (await books.starts('rated')).get('r') ?? [];
  expect(mostInWindow(rated, RATE.perMs)).toBe(RATE.limit);
  expect(mostInWindow(await books.calls('rated', 'r'), RATE.perMs)).toBeLessThanOrEqual(RATE.limit);
}

const KILLS = size(2, 25);

test(`SIGKILL of one of four workers, ${KILLS} times: limits of groups and their order hold, and groups go on within 5 s`, {
  timeout: KILLS * 15_000 + 60_000,
}, async () => {
  const fleet = await start(4);
  await startRespiteIsOver(database);
  await underLoad(fleet, async (producer) => {
    for (let kills = 0; kills < KILLS; kills++) {
      await delay(500 + Math.random() * 1_500);
      // One that runs a job of a group in order, which takes longer than it is looked for.
      const group = `long ${kills}`;
      const { id } = await queue.enqueue(database.db, groupJob('order'), plain(group, 3_000), { group });
      producer.enqueued.push(id);
      await fleet.kill(await until(async () => (await audit.runs('order')).get(group)?.[0]?.worker));
      await fleet.start(1);
    }
  });
  // How long each group stood still after the death of the worker that ran its first job.
  const times = [...(await audit.runs('order')).values()].flatMap((runs) =>
    runs.flatMap(({ outcome, worker, beganAt, departedAt }, index) => {
      const next = runs[index + 1];
      if (outcome !== null || next === undefined || departedAt === null) return [];
      expect(next.worker).not.toBe(worker);
      return [(next.beganAt - beganAt) / 1_000];
    }),
  );
  printTimes(`SIGKILL of the worker that runs a group in order, ${KILLS} times, until it goes on`, times);
  expect(times.length).toBeGreaterThanOrEqual(KILLS);
  expect(Math.max(...times)).toBeLessThanOrEqual(5_000);
});

test('SIGKILL of a worker that runs a group of which nobody else knows: it goes on elsewhere within 5 s', {
  timeout: 240_000,
}, async () => {
  const fleet = await start(2);
  await startRespiteIsOver(database);
  const entries = Array.from({ length: 3 }, () => ({ payload: plain('quiet', 500), group: 'quiet' }));
  await queue.enqueueMany(database.db, groupJob('order'), entries);
  const runs = async () => (await audit.runs('order')).get('quiet') ?? [];
  const begun = await until(async () => (await runs())[0]);
  const victim = fleet.processes.find((process) => process.output().includes(`started ${begun?.worker}\n`));
  expect(await victim?.end('SIGKILL')).toBe('SIGKILL');
  await settled();
  const [first, again, ...others] = await runs();
  expect([first?.job, first?.outcome, again?.job]).toEqual([begun?.job, null, begun?.job]);
  expect(others).toHaveLength(2);
  const ms = ((again?.beganAt ?? Number.POSITIVE_INFINITY) - (first?.beganAt ?? 0)) / 1_000;
  printTimes('SIGKILL of the worker that runs a quiet group, from its start to the start elsewhere', [ms]);
  expect(ms).toBeLessThanOrEqual(5_000);
  expect((await fleet.stop()).sort()).toEqual([0, 'SIGKILL']);
});

const CRASHES = size(2, 5);
const STORM_MS = size(4_000, 30_000);

test(`connections that are terminated every 150 ms for ${STORM_MS / 1_000} s: limits of groups and their order hold`, {
  timeout: STORM_MS + 120_000,
}, async () => {
  const fleet = await start(4);
  let terminated = 0;
  await underLoad(fleet, async () => {
    const endMs = performance.now() + STORM_MS;
    while (performance.now() < endMs) {
      const rows = await database.client`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'grouped-worker' order by random() limit 1`;
      terminated += rows.length;
      await delay(150);
    }
  });
  expect(terminated).toBeGreaterThan(STORM_MS / 600);
});

test.skipIf(!hasPgBouncer())(
  'behind PgBouncer in transaction mode: limits of groups and their order hold',
  {
    timeout: 120_000,
  },
  async () => {
    const pgBouncer = await startPgBouncer(database.url, 6);
    onTestFinished(() => pgBouncer.stop());
    // Without a session a death is seen by its silence.
    const worker = { listen: false, silentMs: 15_000 };
    const fleet = await start(3, { url: pgBouncer.url(database.url), worker });
    await underLoad(fleet, async () => {
      await delay(2_000);
      // Which is noticed after a quarter of a minute.
      for (let kills = 0; kills < size(0, 1); kills++) await fleet.kill();
      await delay(1_000);
    });
  },
);

test('a rolling deploy with another limit of each group: each worker keeps to its own', {
  timeout: 240_000,
}, async () => {
  const version = (concurrency: number): Partial<FleetOptions> => ({
    limits: { tenants: { groups: { concurrency } } },
    jobs: [{ kind: 'tenants', queue: 'tenants' }],
  });
  const load: GroupLoad = { queue: 'tenants', groups: TENANTS, waiting: 15, work: () => plain('', 150) };
  const producer = new Producer(database, queue, [load]);
  const most = async (from: number) => {
    const runs = [...(await audit.runs('tenants')).values()];
    return runs.map((ofGroup) => mostAtOnce(ofGroup.filter(({ claimedAt }) => claimedAt > from)));
  };
  await producer.fill();
  producer.start();
  try {
    const old = await start(2, version(3));
    await until(async () => (await most(0)).join() === '3,3,3');
    const now = await start(2, version(1));
    const ofNew = new Set(
      now.processes.map((process) => Number(/started (\d+)/.exec(process.output())?.[1])),
    );
    const runsOfNew = async () =>
      [...(await audit.runs('tenants')).values()].flat().filter(({ worker }) => ofNew.has(worker));
    // Beside old ones at their limit the new ones get nothing: so jobs come two at a time, to groups without any.
    await producer.end();
    await until(async () => {
      await settled();
      await producer.fill([{ ...load, waiting: 2 }]);
      return (await runsOfNew()).length >= 5;
    });
    producer.start();
    await delay(1_500);
    // A worker of the new version claims only where nothing is held.
    for (const runs of (await audit.runs('tenants')).values()) {
      for (const run of runs.filter(({ worker }) => ofNew.has(worker))) {
        const held = runs.filter(
          (other) =>
            other !== run && other.beganAt < run.claimedAt && (other.endedAt ?? Infinity) > run.beganAt,
        );
        expect(held).toEqual([]);
      }
    }
    expect(await old.stop()).toEqual([0, 0]);
    const from = await audit.now();
    await until(async () => (await most(from)).join() === '1,1,1');
    await delay(1_000);
    expect(await most(from)).toEqual([1, 1, 1]);
    await producer.end();
    await settled();
    expect(await now.stop()).toEqual([0, 0]);
  } finally {
    await producer.end();
  }
  await expectDone(producer);
  expect(Math.max(...(await most(0)))).toBe(3);
});

test('PostgreSQL stopped with immediate and started again: limits of groups and their order hold', {
  timeout: 120_000,
}, async () => {
  const server = await startPostgres({ settings: { synchronous_commit: true } });
  onTestFinished(() => server.stop());
  const crashing = await createDatabase(server.url);
  await migrateDatabase(crashing.url);
  const client = postgres(crashing.url, { max: 4, onnotice: () => {}, backoff: () => 0.2 });
  onTestFinished(() => client.end({ timeout: 1 }));
  const connection = { url: crashing.url, client, db: drizzle({ client }) };
  await addControlTables(connection);
  await Fleet.createLedger(connection);
  const books = new Audit(connection);
  await books.create();
  const fleet = new Fleet(connection, groupedFleet);
  fleets.push(fleet);
  await fleet.start(4);
  // All of it before the first crash: whether a commit whose answer was lost has been made, only the tables know.
  const producer = new Producer(connection, queue, loads);
  for (let turn = 0; turn < 4 || !(await areReached(books)); turn++) {
    await producer.fill();
    await delay(500);
  }
  for (let crashes = 0; crashes < CRASHES; crashes++) {
    await producer.fill();
    await delay(300 + Math.random() * 500);
    await server.crash();
    await delay(500);
    await server.restart();
    await until(() =>
      client`select 1`.then(
        () => true,
        () => false,
      ),
    );
  }
  await until(async () => (await client`select from queue_jobs`.catch(() => [0])).length === 0, {
    timeoutMs: 60_000,
  });
  expect(await fleet.stop()).toEqual([0, 0, 0, 0]);
  const done = await client<{ id: string }[]>`select job_id as id from queue_results order by job_id`;
  expect(done.map(({ id }) => Number(id))).toEqual([...producer.enqueued].sort((a, b) => a - b));
  await expectLimits(books);
  expect(fleet.output).not.toMatch(/^gone/m);
});

test('SIGSTOP of a worker in the midst of runs for longer than the detection time: it begins nothing behind a job that it has lost', {
  timeout: 300_000,
}, async () => {
  const serials: readonly Serial[] = ['end', 'attempt', 'success'];
  const settings = {
    limits: Object.fromEntries(serials.map((serial) => [serial, { groups: { serial } }])),
    jobs: serials.map((serial) => ({ kind: serial, queue: serial })),
    worker: { frozenMs: 15_000, silentMs: 15_000 },
  };
  const grouped = createQueue({ limits: limitsIn(control, settings.limits) });
  const enqueue = async (name: string, works: readonly GroupWork[]) => {
    const entries = works.map((payload) => ({ payload, group: payload.group }));
    return (await grouped.enqueueMany(database.db, groupJob(name), entries)).map(({ id }) => id);
  };
  const sleeper = await start(1, settings);
  const ids = new Map<string, number[]>();
  const isOfFirst = (job: number) => [...ids.values()].some(([first]) => first === job);
  let group = '';
  const runsOfFirst = async () => {
    const runs = await Promise.all(serials.map((serial) => audit.runs(serial)));
    return runs.flatMap((groups) => (groups.get(group) ?? []).filter(({ job }) => isOfFirst(job)));
  };
  // It learns that jobs are short, from so many that it forgets how slow the first ones were, and the long ones of the
  // turn before. Then it claims more than one of a group at once. On a busy machine they are not short.
  for (let turn = 1; ; turn++) {
    group = `g${turn}`;
    for (const serial of serials) await enqueue(serial, repeated(150, plain('warm', 0)));
    await settled();
    for (const serial of serials) {
      ids.set(serial, await enqueue(serial, [plain(group, 3_000), ...repeated(5, plain(group, 400))]));
    }
    await until(async () => (await runsOfFirst()).length === serials.length);
    const held = await database.client<{ queue: string; n: number }[]>`
      select queue, count(*)::int as n from queue_jobs where worker_id is not null group by queue`;
    // The one that runs, and at least one behind it.
    if (held.filter(({ n }) => n > 1).length === serials.length) break;
    if (turn === 10) throw new Error(`a run of jobs was never claimed at once: ${JSON.stringify(held)}`);
    await settled();
  }
  const process = sleeper.processes[0]?.child;
  process?.kill('SIGSTOP');
  const other = await start(1, settings);
  await until(async () => (await runsOfFirst()).length === 2 * serials.length, { timeoutMs: 60_000 });
  process?.kill('SIGCONT');
  await settled();
  for (const fleet of [sleeper, other]) expect(await fleet.stop()).toEqual([0]);
  for (const serial of serials) {
    const runs = (await audit.runs(serial)).get(group) ?? [];
    const [first] = ids.get(serial) ?? [];
    const [slept, worked] = runs.filter(({ job }) => job === first);
    // It looks at the clock before each beginning, so not even the next one begins before it has asked.
    const early = runs.filter(
      ({ job, worker, beganAt }) =>
        job !== first && worker === slept?.worker && beganAt < (worked?.endedAt ?? 0),
    );
    expect([serial, early]).toEqual([serial, []]);
    expect(new Set(runs.map(({ job }) => job))).toEqual(new Set(ids.get(serial)));
    // From then on they go one after the other again.
    expect(overlaps(runs.filter((run) => run !== slept))).toEqual([]);
  }
});

function repeated(count: number, work: GroupWork): GroupWork[] {
  return Array.from({ length: count }, () => work);
}
