import { setTimeout as delay } from 'node:timers/promises';
import { createQueue, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { pruneGroups } from '../../src/features/limits/queries/prune-groups.ts';
import type { DeclaredQueueLimits, Serial } from '../../src/features/limits/settings/limit-settings.ts';
import { median } from '../faults/recovery.ts';
import { addControlTables } from '../support/control-tables.ts';
import { depth, full } from '../support/depth.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { Audit, type Start } from './audit.ts';
import { Fleet } from './fleet.ts';
import { type GroupLoad, groupJob, NO_GROUP, Producer } from './group-load.ts';
import { GroupWatcher } from './group-watcher.ts';
import type { GroupWork } from './group-work.ts';
import { misplaced, mostAtOnce, mostInWindow, overlaps, unstopped } from './order.ts';

const database = useTestDatabase();
const audit = new Audit(database);

const PROCESSES = 12;
const SLOTS = 3;
const MS = depth(8_000, 60_000);
/** A machine that is busy with other things takes longer to show it all. */
const MAX_MS = 4 * MS;
const EVERY_MS = 1_000;
const DEATHS = depth(4, 20);
const CHANGES = depth(3, 6);

const TENANTS = ['t0', 't1', 't2', 't3', 't4'];
const CHANGED = 'tenants/t4';
const RATE = { limit: 10, perMs: 2_000 };
/** Starts that a worker has taken are void after an eighth of it, which is longer than an answer takes here as a rule. */
const QUEUE_RATE = { limit: 60, perMs: 6_000 };
/** Some window sees more of it than this. The next job may be too dear for what is left. */
const QUEUE_RATE_USED = QUEUE_RATE.limit - 3;
const BACKLOG = 100;
const SERIALS: readonly Serial[] = ['attempt', 'end', 'success'];
const ORDERED = ['a', 'b', 'c'];
const limits: Record<string, DeclaredQueueLimits> = {
  tenants: { groups: { concurrency: 2 } },
  rated: { groups: { rate: RATE } },
  paced: { rate: QUEUE_RATE },
  fair: { groups: {} },
  ...Object.fromEntries(SERIALS.map((serial) => [serial, { groups: { serial } }])),
};
const queue = createQueue({ limits: limitsIn(control, limits) });

const between = (low: number, high: number) => low + Math.floor(Math.random() * (high - low));
const works = (low: number, high: number) => () => ({
  ms: between(low, high),
  snoozes: 0,
  fails: 0,
  discards: false,
});
const failing = (): Omit<GroupWork, 'group'> => ({
  // Short ones are claimed in runs.
  ms: Math.random() < 0.3 ? 0 : between(20, 120),
  snoozes: Math.random() < 0.1 ? 1 : 0,
  fails: Math.random() < 0.1 ? 1 : 0,
  discards: Math.random() < 0.05,
});
const loads: readonly GroupLoad[] = [
  { queue: 'tenants', groups: TENANTS, waiting: 10, work: works(200, 400) },
  { queue: 'rated', groups: ['r0', 'r1'], waiting: 15, work: works(10, 50) },
  { queue: 'paced', groups: [NO_GROUP], waiting: 20, work: works(10, 50), cost: () => between(1, 4) },
  { queue: 'fair', groups: ['big', 'triple'], waiting: BACKLOG, work: works(300, 700) },
  ...SERIALS.map((queue) => ({ queue, groups: ORDERED, waiting: 15, work: failing })),
];

/** What the race has shown. */
interface Race {
  readonly fleet: Fleet;
  readonly watcher: GroupWatcher;
  readonly producer: Producer;
  /** The jobs of groups that had been idle. */
  readonly newcomers: readonly number[];
  /** From when until when, by the database's clock in microseconds, jobs were kept waiting. */
  readonly busy: readonly [fromAt: number, untilAt: number];
}

let race: Race;

beforeAll(
  async () => {
    await addControlTables(database);
    await Fleet.createLedger(database);
    await audit.create();
    race = await run();
  },
  2 * MAX_MS + 360_000,
);

async function run(): Promise<Race> {
  const jobs = Object.keys(limits).map((name) => ({ kind: name, queue: name }));
  const program = 'limits/fixtures/grouped-worker.ts';
  const fleet = new Fleet(database, { limits, jobs, concurrency: SLOTS, program });
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('no connection');
  const watcher = new GroupWatcher(connection);
  const producer = new Producer(database, queue, loads);
  try {
    await queue.limits.set(database.db, { queue: 'fair', group: 'triple' }, { weight: 3 });
    for (const tenant of TENANTS) watcher.limit(`tenants/${tenant}`, 2);
    await fleet.start(PROCESSES);
    const fromAt = await audit.now();
    await producer.fill();
    watcher.start();
    producer.start();
    const startMs = performance.now();
    const isOver = () => {
      const ms = performance.now() - startMs;
      return failed || (ms > MS && hasSeenAll(fleet)) || ms > MAX_MS;
    };
    let failed = false;
    const newcomers: number[] = [];
    const parts = [
      fleet.disturb(isOver, EVERY_MS, 1_500),
      change(watcher, isOver),
      operate('success', isOver),
      visit(newcomers, isOver),
    ];
    await Promise.all(parts).catch(async (error) => {
      failed = true;
      await Promise.allSettled(parts);
      throw error;
    });
    await producer.end();
    const untilAt = await audit.now();
    await finish();
    await usePaced(producer);
    await watcher.stop();
    const codes = await fleet.stop();
    if (codes.some((code) => code !== 0)) throw new Error(`worker processes have ended with ${codes}`);
    return { fleet, watcher, producer, newcomers, busy: [fromAt, untilAt] };
  } finally {
    await producer.end();
    await watcher.stop();
    fleet.abandon();
  }
}

function hasSeenAll({ deaths, leaves, naps }: Fleet): boolean {
  return deaths >= DEATHS && leaves > 0 && naps > 0 && changes >= CHANGES;
}

/** Changes the limit of one group again and again, each time when it was reached. */
async function change(watcher: GroupWatcher, isOver: () => boolean): Promise<void> {
  const name = { queue: 'tenants', group: 't4' };
  const reached = async (held: number) => await until(() => isOver() || watcher.hasReached(CHANGED, held));
  await reached(2);
  for (let turn = 0; !isOver(); turn++) {
    const concurrency = [5, 1, 3][turn % 3] ?? 2;
    watcher.ignore(CHANGED);
    await queue.limits.set(database.db, name, { concurrency });
    watcher.limit(CHANGED, concurrency);
    await reached(concurrency);
    if (!isOver()) changes++;
  }
  watcher.ignore(CHANGED);
  await queue.limits.set(database.db, name, null);
}
let changes = 0;

/** Lets stopped groups go on, by either way. */
async function operate(name: string, isOver: () => boolean): Promise<void> {
  for (let turn = 0; !isOver(); ) {
    turn += await letGo(name, turn);
    await delay(200);
  }
}

async function letGo(name: string, turn: number): Promise<number> {
  const { groups } = await queue.limits.groups(database.db, { queue: name });
  const blocked = groups.filter(({ state }) => state === 'blocked');
  for (const [index, { group, blockedBy }] of blocked.entries()) {
    await audit.act(name, group);
    if ((turn + index) % 2 === 0) await queue.limits.unblock(database.db, { queue: name, group });
    else await queue.redrive(database.db, blockedBy ?? 0);
  }
  return blocked.length;
}

/** Enqueues single jobs for groups that have none. */
async function visit(newcomers: number[], isOver: () => boolean): Promise<void> {
  for (let turn = 0; !isOver(); turn++) {
    const group = `visitor ${turn % 20}`;
    const payload = { group, ...works(10, 50)() };
    const { id } = await queue.enqueue(database.db, groupJob('fair'), payload, { group });
    newcomers.push(id);
    await delay(250);
  }
}

/** Waits until nothing is left to do. */
async function finish(): Promise<void> {
  const left = () => database.client<{ queue: string; n: number }[]>`
    select queue, count(*)::int as n from queue_jobs group by queue`;
  await until(
    async () => {
      await letGo('success', 0);
      return (await left()).length === 0;
    },
    { timeoutMs: 90_000, intervalMs: 100 },
  ).catch(async () => {
    throw new Error(`jobs are left: ${JSON.stringify(await left())}`);
  });
}

/**
 * Lets the rate of the queue be used in one go, again and again until a window has seen nearly all of it. A
 * start counts for a window from the moment until which it may be kept. Where answers take long that is much
 * later than its call, and where they come too late it is lost. So while jobs wait all the time, a busy
 * machine never uses it all.
 */
async function usePaced(producer: Producer): Promise<void> {
  const untilMs = performance.now() + MAX_MS + 60_000;
  const mostUsed = async () => mostInWindow(await audit.calls('paced'), QUEUE_RATE.perMs);
  while ((await mostUsed()) <= QUEUE_RATE_USED && performance.now() < untilMs) {
    // All starts are free again.
    await until(
      async () => {
        const last = (await audit.calls('paced')).at(-1)?.at ?? 0;
        return (await audit.now()) - last > 2 * QUEUE_RATE.perMs * 1_000;
      },
      { timeoutMs: 60_000, intervalMs: 100 },
    );
    await producer.fill(
      loads.filter(({ queue }) => queue === 'paced').map((load) => ({ ...load, waiting: 40 })),
    );
    await finish();
  }
}

function most(group: string) {
  return race.watcher.most.get(group);
}

/** What of a rate was used while jobs were waiting. */
function useOf(
  starts: readonly Pick<Start, 'at' | 'cost'>[],
  { limit, perMs }: { limit: number; perMs: number },
): number {
  const [fromAt, untilAt] = race.busy;
  const used = starts.filter(({ at }) => at < untilAt).reduce((sum, { cost }) => sum + cost, 0);
  return used / ((limit * (untilAt - fromAt)) / 1_000 / perMs);
}

describe(`${PROCESSES} processes that die, leave and sleep at random`, () => {
  test('do every job, and leave nothing behind', async () => {
    const { fleet, producer, newcomers, watcher } = race;
    expect(fleet.deaths).toBeGreaterThanOrEqual(DEATHS);
    expect(fleet.leaves).toBeGreaterThan(0);
    expect(fleet.naps).toBeGreaterThan(0);
    expect(watcher.looks).toBeGreaterThan(MS / 200);
    expect(fleet.output).not.toMatch(/lost|error/);
    const rows = await database.client<{ id: string; state: string; discarded: boolean }[]>`
      select job_id as id, state, (payload ->> 'discards')::bool as discarded from queue_results`;
    expect(rows.map(({ id }) => Number(id)).sort((a, b) => a - b)).toEqual(
      [...producer.enqueued, ...newcomers].sort((a, b) => a - b),
    );
    expect(rows.filter(({ state, discarded }) => state !== 'completed' && !discarded)).toEqual([]);
  });

  test('leave no row about groups that are empty', async () => {
    // One more folds in what the last ones have noted.
    const jobs = Object.keys(limits).map((name) => ({ kind: name, queue: name }));
    const last = new Fleet(database, {
      limits,
      jobs,
      concurrency: SLOTS,
      program: 'limits/fixtures/grouped-worker.ts',
    });
    onTestFinished(() => last.abandon());
    await last.start(1);
    const rows = async () => {
      for (const name of Object.keys(limits)) {
        const ratePerMs = limits[name]?.groups?.rate?.perMs;
        await pruneGroups(database.db, queue.limits.tables, { queue: name, after: '', ratePerMs });
      }
      return await database.client`
        select 'note' as what, queue, group_keys::text as group_key from queue_notes
        union all select 'hold', queue, group_key from queue_holds
        union all select 'group', queue, group_key from queue_groups
        union all select 'lease', queue, kind from queue_usage where leases <> '{}'
        union all select 'worker', name, '' from queue_workers where id <> (select max(id) from queue_workers)`;
    };
    await until(async () => (await rows()).length === 0).catch(async () => expect(await rows()).toEqual([]));
    expect(await last.stop()).toEqual([0]);
  });

  test('never hold more of a group than its limit, and reach it', async () => {
    const { watcher } = race;
    for (const tenant of TENANTS.slice(0, -1)) {
      const { held, running } = most(`tenants/${tenant}`) ?? {};
      expect([tenant, held, running]).toEqual([tenant, 2, 2]);
    }
    const runs = await audit.runs('tenants');
    for (const tenant of TENANTS.slice(0, -1)) expect(mostAtOnce(runs.get(tenant) ?? [])).toBe(2);
    expect(watcher.exceeded).toEqual([]);
  });

  test('heed another limit of a single group, and reach that', async () => {
    expect(race.watcher.exceeded).toEqual([]);
    // It was seen to hold so many, each time.
    expect(changes).toBeGreaterThanOrEqual(CHANGES);
    const most = mostAtOnce((await audit.runs('tenants')).get('t4') ?? []);
    expect(most).toBeGreaterThan(2);
    expect(most).toBeLessThanOrEqual(5);
  });

  test('never start more of a group in any window than its rate, and reach it', async () => {
    const starts = await audit.starts('rated');
    expect([...starts.keys()].sort()).toEqual(['r0', 'r1']);
    for (const [group, ofGroup] of starts) {
      expect([group, mostInWindow(ofGroup, RATE.perMs)]).toEqual([group, RATE.limit]);
      expect(mostInWindow(await audit.calls('rated', group), RATE.perMs)).toBeLessThanOrEqual(RATE.limit);
      // Not only at the beginning.
      expect(useOf(ofGroup, RATE)).toBeGreaterThan(0.5);
    }
  });

  test('never call more handlers of a queue in any window than its rate, by cost, and use it', async () => {
    const starts = await audit.calls('paced');
    const window = mostInWindow(starts, QUEUE_RATE.perMs);
    expect(window).toBeLessThanOrEqual(QUEUE_RATE.limit);
    expect(window).toBeGreaterThan(QUEUE_RATE_USED);
    expect(useOf(starts, QUEUE_RATE)).toBeGreaterThan(0.25);
  });

  test('give a group that was idle its turn, whatever the backlog of others', async () => {
    const starts = await audit.starts('fair');
    const others = [...(starts.get('big') ?? []), ...(starts.get('triple') ?? [])];
    const first = [...starts].flatMap(([group, ofGroup]) =>
      group.startsWith('visitor') ? ofGroup.filter(({ fence }) => fence === 1) : [],
    );
    expect(first).toHaveLength(race.newcomers.length);
    const before = first.map(
      ({ at, createdAt }) => others.filter((other) => other.at > createdAt && other.at < at).length,
    );
    // One round is a claim of each process; a backlog is more than all have slots.
    expect(Math.max(...before)).toBeLessThanOrEqual(PROCESSES * SLOTS);
    // As a rule no more than one for each process: its claim was under way.
    expect(median(before)).toBeLessThanOrEqual(PROCESSES);
  });

  test('give groups shares by their weights', async () => {
    const starts = await audit.starts('fair');
    const [, untilAt] = race.busy;
    const of = (group: string) => starts.get(group)?.filter(({ at }) => at < untilAt).length ?? 0;
    expect(of('triple') / of('big')).toBeGreaterThan(2);
    expect(of('triple') / of('big')).toBeLessThan(4);
  });

  test.each(SERIALS)(
    "'%s' run the jobs of a group one after the other, in the promised order",
    async (serial) => {
      const runs = await audit.runs(serial);
      const actions = await audit.actions(serial);
      expect([...runs.keys()].sort()).toEqual(ORDERED);
      for (const [group, ofGroup] of runs) {
        expect(overlaps(ofGroup)).toEqual([]);
        expect(misplaced(ofGroup)).toEqual([]);
        if (serial === 'success') expect(unstopped(ofGroup, actions.get(group) ?? [])).toEqual([]);
        expect(most(`${serial}/${group}`)?.holders).toBe(1);
        expect(most(`${serial}/${group}`)?.running).toBe(1);
      }
    },
  );

  test('have ended jobs of groups in order in every way, and died in the midst of some', async () => {
    const outcomesOf = async (names: readonly string[]) => {
      const runs = await Promise.all(names.map((name) => audit.runs(name)));
      return new Set(runs.flatMap((groups) => [...groups.values()].flat().map(({ outcome }) => outcome)));
    };
    const ordered = await outcomesOf(SERIALS);
    for (const outcome of ['completed', 'retried', 'snoozed', 'discarded'] as const) {
      expect([outcome, ordered.has(outcome)]).toEqual([outcome, true]);
    }
    // `null` is what was never ended; few deaths may spare those that are mostly idle.
    expect(await outcomesOf(Object.keys(limits))).toContain(null);
    if (full) expect(ordered).toContain(null);
  });
});
