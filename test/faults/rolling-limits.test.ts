import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createQueue, limitsIn, type QueueLimits } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Audit, type Start } from '../limits/audit.ts';
import { Fleet } from '../limits/fleet.ts';
import { type GroupLoad, groupJob, NO_GROUP, Producer } from '../limits/group-load.ts';
import { GroupWatcher } from '../limits/group-watcher.ts';
import type { GroupWork } from '../limits/group-work.ts';
import { misplaced, mostAtOnce, mostInWindow, overlaps } from '../limits/order.ts';
import { Watcher } from '../limits/watcher.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { median, print } from './recovery.ts';
import { size } from './size.ts';

const database = useTestDatabase();
const audit = new Audit(database);

const PROCESSES = 8;
const SLOTS = 3;
const DEPLOYS = size(2, 6);
/** How long a version runs alone, between two deploys. */
const ALONE_MS = size(6_000, 20_000);
/** Many times as long as a round trip, on a busy machine too: of shorter windows much is not used there. */
const WINDOW_MS = 5_000;
const TENANTS = ['t0', 't1', 't2'];
const ORDERED = ['a', 'b', 'c'];

/** What one version of the code declares. */
interface Declared {
  readonly whole: number;
  readonly kind: number;
  readonly tenant: number;
  /** Handlers in a window, of a queue. */
  readonly paced: number;
  /** Claims in a window, of a group. */
  readonly rated: number;
}

const wide: Declared = { whole: 6, kind: 4, tenant: 3, paced: 30, rated: 16 };
const narrow: Declared = { whole: 3, kind: 2, tenant: 1, paced: 20, rated: 8 };

function limitsOf({ whole, kind, tenant, paced, rated }: Declared): Record<string, QueueLimits> {
  return {
    whole: { concurrency: whole },
    rare: { kinds: { rare: { concurrency: kind } } },
    tenants: { groups: { concurrency: tenant } },
    paced: { rate: { limit: paced, perMs: WINDOW_MS } },
    rated: { groups: { rate: { limit: rated, perMs: WINDOW_MS } } },
    fair: { groups: 'fair' },
    order: { groups: { serial: 'end' } },
  };
}

const limits = limitsOf(wide);
const queue = createQueue({ limits: limitsIn(control, limits) });
const between = (low: number, high: number) => low + Math.floor(Math.random() * (high - low));
const works = (low: number, high: number) => () => ({
  ms: between(low, high),
  snoozes: 0,
  fails: 0,
  discards: false,
});
const failing = (): Omit<GroupWork, 'group'> => ({
  ms: between(0, 60),
  snoozes: 0,
  fails: Math.random() < 0.1 ? 1 : 0,
  discards: Math.random() < 0.05,
});
/**
 * While there is one, jobs under limits of slots run until this file exists: between two jobs a slot is idle for some round trips, which take
 * long on a busy machine, so there all slots are seldom in use at once.
 */
let gate: string | undefined;
const MAX_GATED_MS = 90_000;
const gated = () => ({ ...works(500, 1_500)(), ...(gate !== undefined && { ms: MAX_GATED_MS, gate }) });
const loads: readonly GroupLoad[] = [
  { queue: 'whole', groups: [NO_GROUP], waiting: 12, work: gated },
  { queue: 'rare', groups: [NO_GROUP], waiting: 12, work: gated },
  { queue: 'tenants', groups: TENANTS, waiting: 10, work: works(100, 300) },
  { queue: 'paced', groups: [NO_GROUP], waiting: 60, work: works(10, 50) },
  { queue: 'rated', groups: ['r'], waiting: 30, work: works(10, 50) },
  { queue: 'fair', groups: ['big', 'bigger'], waiting: 60, work: works(300, 700) },
  { queue: 'order', groups: ORDERED, waiting: 15, work: failing },
];

const fleets: Fleet[] = [];
beforeAll(async () => {
  await addControlTables(database);
  await Fleet.createLedger(database);
  await audit.create();
});
afterEach(() => {
  for (const fleet of fleets) fleet.abandon();
});

function fleetOf(declared: Declared): Fleet {
  const fleet = new Fleet(database, {
    limits: limitsOf(declared),
    jobs: Object.keys(limits).map((name) => ({ kind: name, queue: name })),
    concurrency: SLOTS,
    program: 'limits/fixtures/grouped-worker.ts',
    worker: { frozenMs: 15_000, silentMs: 15_000 },
  });
  fleets.push(fleet);
  return fleet;
}

/** When only workers of one version ran, by the database's clock in microseconds. */
interface Alone {
  readonly declared: Declared;
  readonly fromAt: number;
  readonly untilAt: number;
}

/** What looks at the tables, and where it saw more than is allowed. */
interface Watchers {
  readonly groups: GroupWatcher;
  readonly leases: Watcher;
  readonly exceeded: string[];
}

/** The limits of slots, by the watcher's names of them. */
function slotsOf({ whole, kind }: Declared): readonly (readonly [name: string, limit: number])[] {
  return [
    ['whole', whole],
    ['rare/rare', kind],
  ];
}

/** Whether as many of the queue, of the kind and of each tenant were seen at once as their limits allow. */
function hasReached({ groups, leases }: Watchers, declared: Declared): boolean {
  return (
    slotsOf(declared).every(([name, limit]) => (leases.most.get(name)?.running ?? 0) >= limit) &&
    TENANTS.every((name) => groups.hasReached(`tenants/${name}`, declared.tenant))
  );
}

/** What is seen of the limits of slots, for those who look for the cause. */
async function seen({ groups, leases }: Watchers, declared: Declared, fleet: Fleet): Promise<unknown> {
  const rows = (text: string) => database.client.unsafe(text);
  const looks = slotsOf(declared).map(([name, limit]) => ({
    name,
    limit,
    running: [...(leases.running.get(name) ?? [])].sort(),
    leased: [...(leases.leased.get(name) ?? [])].sort(),
  }));
  return {
    processes: fleet.size,
    looks,
    all: leases.looks,
    tenants: TENANTS.map((name) => groups.most.get(`tenants/${name}`)),
    usage: await rows('select queue, kind, leases from queue_usage order by 1, 2'),
    workers: await rows('select id, seen_at from queue_workers order by 1').catch(String),
    jobs: await rows(
      'select queue, worker_id, count(*)::int as n from queue_jobs group by 1, 2 order by 1, 2',
    ),
    running: await rows(
      `select queue, worker_id, count(*)::int as n from ledger where ended_at is null
       and worker_id in (select id from queue_workers) group by 1, 2 order by 1, 2`,
    ),
  };
}

/** Compares what was seen of the queue and the kind since the last time with what is allowed. */
function judgeSlots({ leases, exceeded }: Watchers, declared: Declared): void {
  for (const [name, limit] of slotsOf(declared)) {
    const { running = 0 } = leases.most.get(name) ?? {};
    if (running > limit) exceeded.push(`${name}: ${running} ran, not ${limit}`);
  }
  leases.reset();
}

let sleeps = 0;
/** Freezes a process for a moment; the first one, and each fifth, until the others have declared it gone. */
async function sleep(fleet: Fleet): Promise<void> {
  await (sleeps++ % 5 === 0 ? fleet.oversleep() : fleet.nap(between(300, 1_500)));
}

/** Replaces the processes, two at a time: of three, one is killed instead of stopped, and one is frozen first. */
async function roll(from: Fleet, to: Fleet): Promise<void> {
  const end = async (turn: number) => {
    if (turn % 3 === 1) return await from.kill();
    if (turn % 3 === 2) await sleep(from);
    await from.leave();
  };
  for (let turn = 0; from.size > 0; turn += 2) {
    await to.start(Math.min(2, from.size));
    await Promise.all(Array.from({ length: Math.min(2, from.size) }, (_, n) => end(turn + n)));
  }
}

/** Waits until workers that were killed are known to be gone. */
async function onlyHas(fleet: Fleet): Promise<void> {
  await until(async () => {
    const [row] = await database.client<[{ n: number }]>`select count(*)::int as n from queue_workers`;
    return row.n === fleet.size;
  });
}

/** Enqueues a job for a group that has none, again and again. */
async function visit(isOver: () => boolean): Promise<number[]> {
  const ids: number[] = [];
  for (let turn = 0; !isOver(); turn++) {
    const group = `visitor ${turn % 20}`;
    const payload = { group, ...works(10, 50)() };
    const { id } = await queue.enqueue(database.db, groupJob('fair'), payload, { group });
    ids.push(id);
    await delay(250);
  }
  return ids;
}

async function settled(): Promise<void> {
  const left = () =>
    database.client`select queue, group_key, count(*)::int as n from queue_jobs group by 1, 2`;
  await until(async () => (await left()).length === 0, { intervalMs: 50 }).catch(async () => {
    throw new Error(`not settled: ${JSON.stringify(await left())}`);
  });
}

/** Lets jobs that are enqueued meanwhile run until something has happened. */
async function throughGate(happen: () => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'drizzle-queue-gate-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const opened = join(directory, 'open');
  gate = opened;
  try {
    await happen();
  } finally {
    gate = undefined;
    writeFileSync(opened, '');
  }
}

/** Deploys one version after the other under load; answers when each ran alone, and the ids of visitors. */
async function deploy(watchers: Watchers): Promise<{ alone: Alone[]; visitors: number[]; last: Fleet }> {
  const { groups, leases } = watchers;
  const judgeTenants = (tenant: number) => {
    for (const name of TENANTS) groups.limit(`tenants/${name}`, tenant);
  };
  const alone: Alone[] = [];
  let isOver = false;
  let fleet = fleetOf(wide);
  await fleet.start(PROCESSES);
  judgeTenants(wide.tenant);
  const visiting = visit(() => isOver);
  try {
    for (let turn = 0; ; turn++) {
      const declared = turn % 2 === 0 ? wide : narrow;
      const fromAt = await audit.now();
      const endMs = performance.now() + ALONE_MS;
      const disturbed = fleet;
      await fleet.disturb(
        () => performance.now() > endMs,
        1_000,
        () => sleep(disturbed),
      );
      // No slot is lost for good.
      await throughGate(async () => {
        await until(() => hasReached(watchers, declared)).catch(async () => {
          throw new Error(`not reached: ${JSON.stringify(await seen(watchers, declared, fleet), null, 1)}`);
        });
      });
      await usesRates(declared, fromAt);
      alone.push({ declared, fromAt, untilAt: await audit.now() });
      judgeSlots(watchers, declared);
      if (turn === DEPLOYS) break;
      const next = fleetOf(turn % 2 === 0 ? narrow : wide);
      judgeTenants(wide.tenant);
      await roll(fleet, next);
      fleet = next;
      await onlyHas(fleet);
      judgeSlots(watchers, wide);
      judgeTenants(turn % 2 === 0 ? narrow.tenant : wide.tenant);
    }
  } finally {
    isOver = true;
  }
  leases.reset();
  return { alone, visitors: await visiting, last: fleet };
}

test(`${PROCESSES} processes that are killed, frozen and replaced by versions with other limits, ${DEPLOYS} times: what each declares holds`, {
  timeout: (DEPLOYS + 1) * ALONE_MS + (DEPLOYS + 1) * 120_000 + 120_000,
}, async () => {
  const [forGroups, forLeases] = await database.connect(2);
  if (forGroups === undefined || forLeases === undefined) throw new Error('no connections');
  const watchers = {
    groups: new GroupWatcher(forGroups),
    leases: new Watcher(forLeases),
    exceeded: [],
  };
  const stopWatching = async () => {
    await watchers.groups.stop();
    await watchers.leases.stop();
  };
  onTestFinished(stopWatching);
  const producer = new Producer(database, queue, loads);
  await producer.fill();
  watchers.groups.start();
  watchers.leases.start();
  producer.start();
  const { alone, visitors, last } = await deploy(watchers).finally(() => producer.end());
  await settled();
  await stopWatching();
  expect(new Set(await last.stop())).toEqual(new Set([0]));

  // Every job has ended once, and no worker has lost one.
  const done = await database.client<
    { id: string }[]
  >`select job_id as id from queue_results order by job_id`;
  expect(done.map(({ id }) => Number(id))).toEqual([...producer.enqueued, ...visitors].sort((a, b) => a - b));
  for (const { outputOfAwake } of fleets) expect(outputOfAwake).not.toMatch(/lost|error/);
  expect(fleets.reduce((sum, { deaths }) => sum + deaths, 0)).toBeGreaterThan(DEPLOYS * 2);
  expect(fleets.reduce((sum, { naps }) => sum + naps, 0)).toBeGreaterThan(DEPLOYS);
  expect(fleets.reduce((sum, { oversleeps }) => sum + oversleeps, 0)).toBeGreaterThan(0);

  expect(watchers.exceeded).toEqual([]);
  expect(watchers.groups.exceeded).toEqual([]);
  await expectWindows(alone);
  await expectOrder();
  await expectTurns(visitors);
  const tenants = await audit.runs('tenants');
  for (const name of TENANTS) expect(mostAtOnce(tenants.get(name) ?? [])).toBeLessThanOrEqual(wide.tenant);
});

/** The most starts of both rates that a window has seen, from one time on until another. */
async function mostStarts(fromAt: number, untilAt = Number.POSITIVE_INFINITY) {
  const within = <T extends Pick<Start, 'at'>>(starts: readonly T[]) =>
    starts.filter(({ at }) => at >= fromAt && at < untilAt);
  const claims = (await audit.starts('rated')).get('r') ?? [];
  return {
    paced: mostInWindow(within(await audit.calls('paced')), WINDOW_MS),
    rated: mostInWindow(within(claims), WINDOW_MS),
    called: mostInWindow(within(await audit.calls('rated', 'r')), WINDOW_MS),
  };
}

/** Waits until both rates were used: the second in full. */
async function usesRates({ paced, rated }: Declared, fromAt: number): Promise<void> {
  const isUsed = async () => {
    const most = await mostStarts(fromAt);
    return most.paced > paced / 2 && most.rated >= rated;
  };
  await until(isUsed, { intervalMs: 500 }).catch(async () => {
    throw new Error(`of ${paced} and ${rated} were used: ${JSON.stringify(await mostStarts(fromAt))}`);
  });
}

/** No window sees more starts than the larger limit; none while one version ran alone, more than that declares. */
async function expectWindows(alone: readonly Alone[]): Promise<void> {
  const most = await mostStarts(0);
  expect(most.paced).toBeLessThanOrEqual(wide.paced);
  expect(most.rated).toBeLessThanOrEqual(wide.rated);
  expect(most.called).toBeLessThanOrEqual(wide.rated);
  for (const { declared, fromAt, untilAt } of alone) {
    const { paced, rated } = await mostStarts(fromAt, untilAt);
    print(`starts in a window: ${paced} and ${rated}, of ${declared.paced} and ${declared.rated}`);
    expect(paced).toBeLessThanOrEqual(declared.paced);
    // Both are used: the second in full.
    expect(paced).toBeGreaterThan(declared.paced / 2);
    expect(rated).toBe(declared.rated);
  }
}

async function expectOrder(): Promise<void> {
  const runs = await audit.runs('order');
  expect([...runs.keys()].sort()).toEqual(ORDERED);
  for (const ofGroup of runs.values()) {
    expect(overlaps(ofGroup)).toEqual([]);
    expect(misplaced(ofGroup)).toEqual([]);
  }
}

/**
 * The first job of an idle group waits for one round: as many others are claimed before it as all processes have slots. When it begins
 * depends on the worker that has claimed it, too, which may be killed or frozen.
 */
async function expectTurns(visitors: readonly number[]): Promise<void> {
  const starts = await audit.starts('fair');
  const others = [...(starts.get('big') ?? []), ...(starts.get('bigger') ?? [])];
  const first = [...starts].flatMap(([group, ofGroup]) =>
    group.startsWith('visitor') ? ofGroup.filter(({ fence }) => fence === 1) : [],
  );
  expect(first.map(({ job }) => job).sort((a, b) => a - b)).toEqual([...visitors].sort((a, b) => a - b));
  const before = first.map(
    ({ at, createdAt }) => others.filter((other) => other.at > createdAt && other.at < at).length,
  );
  print(`jobs of others that were claimed before the first of an idle group: ${Math.max(...before)} at most`);
  expect(Math.max(...before)).toBeLessThanOrEqual((PROCESSES + 2) * SLOTS);
  // As a rule no more than one for each process: its claim was under way.
  expect(median(before)).toBeLessThanOrEqual(PROCESSES + 2);
  await expectCalls(visitors);
}

/**
 * The same by the calls of handlers, which also wait for what was claimed ahead: as a rule for no more others than claims do. A worker
 * that is killed or frozen holds up the few that it has claimed, until others have taken them over.
 */
async function expectCalls(visitors: readonly number[]): Promise<void> {
  const calls = await audit.calls('fair');
  const others = calls.filter(({ group }) => !group.startsWith('visitor'));
  const waits = visitors.map((visitor) => {
    const first = calls.find(({ job }) => job === visitor);
    if (first === undefined) throw new Error(`the job ${visitor} was never called`);
    const { at, createdAt } = first;
    return {
      others: others.filter((other) => other.at > createdAt && other.at < at).length,
      ms: (at - createdAt) / 1_000,
    };
  });
  const [jobs, times] = [waits.map((wait) => wait.others), waits.map(({ ms }) => ms)];
  print(`jobs of others that began before it: ${median(jobs)}, ${Math.max(...jobs)} at most`);
  print(`from its enqueue to its handler: ${median(times)} ms, ${Math.max(...times)} at most`);
  // First in, first out they would be as many as wait of both tenants.
  expect(median(jobs)).toBeLessThanOrEqual(PROCESSES + 2);
  // As many rounds as a job takes, on a busy machine; and no longer than a worker is missed.
  expect(median(times)).toBeLessThanOrEqual(5_000);
  expect(Math.max(...times)).toBeLessThanOrEqual(40_000);
}
