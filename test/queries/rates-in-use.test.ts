import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { claimGroupedJobs } from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { takeStarts } from '../../src/features/limits/queries/take-starts.ts';
import type { Rate } from '../../src/features/limits/settings/limit-settings.ts';
import { GroupStarts } from '../../src/features/limits/worker/group-starts.ts';
import { Starts } from '../../src/features/limits/worker/starts.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addGrouped, addWorkers, clearGroups, groupClaimOf, groupedTables } from './support/groups.ts';
import { limitTables } from './support/jobs.ts';

const database = useTestDatabase();
beforeAll(async () => {
  await addControlTables(database);
  await database.client.unsafe(`
    create schema clock;
    create function clock.statement_timestamp() returns timestamptz language sql stable as
      $$ select to_timestamp(current_setting('clock.ms')::float8 / 1000) $$`);
});
beforeEach(() => clearGroups(database.client));

/** Whole windows since the epoch, and later than any time of the server. */
const EPOCH_MS = 4_000_000_000_000;
const WINDOWS = 20;
const ROUND_TRIP_MS = 2;

/** A connection on which the real statements see a time that a test sets, in milliseconds. */
function clocked() {
  const client = postgres(database.url, {
    max: 1,
    connection: { search_path: 'clock, pg_catalog, public' },
    onnotice: () => undefined,
  });
  onTestFinished(() => client.end());
  const set = async (ms: number) => {
    await client`select set_config('clock.ms', ${String(EPOCH_MS + ms)}, false)`;
  };
  return { db: drizzle({ client }), client, set };
}

/** Numbers that look random, the same in each run. */
function seedRandom(): void {
  let state = 1;
  const random = vi.spyOn(Math, 'random').mockImplementation(() => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  });
  onTestFinished(() => random.mockRestore());
}

/**
 * What part of a rate was used, by the times at which jobs began: as many begin in each cycle as the limit allows, so some cycles lie
 * between one start and the one that is so many limits later.
 */
function partUsed(begunMs: readonly number[], { limit, perMs }: Rate): number {
  const last = begunMs.length - 1;
  const cycles = Math.floor(last / limit) - 1;
  return (cycles * perMs) / ((begunMs[last] ?? 0) - (begunMs[last - cycles * limit] ?? 0));
}

interface Simulated extends Rate {
  readonly workers: number;
  readonly roundTripMs: number;
}

/** What part of a queue's rate its workers use while no-op jobs wait, by a clock of their own. */
async function usedOfQueue({ limit, perMs, workers, roundTripMs }: Simulated): Promise<number> {
  seedRandom();
  const { db, set } = clocked();
  const rate = { limit, perMs };
  const question = { queue: 'q', kind: '', declared: rate };
  // As many as they have claimed ahead.
  const due = { all: Math.ceil(limit / 4), first: 1 };
  const all: { readonly id: number; readonly starts: Starts; arrives?: { atMs: number; act(): void } }[] = [];
  for (let n = 0; n < workers; n++) {
    const id = await registerWorker(database.db, limitTables, { name: `w${n}`, queues: ['q'] });
    all.push({ id, starts: new Starts(question) });
  }
  const begunMs: number[] = [];
  for (let nowMs = 0; nowMs < WINDOWS * perMs; nowMs++) {
    for (const worker of all) {
      const { id, starts } = worker;
      if (worker.arrives !== undefined && worker.arrives.atMs <= nowMs) {
        worker.arrives.act();
        delete worker.arrives;
      }
      const begins = Math.floor(starts.available(nowMs));
      if (begins > 0) {
        starts.spend(begins, nowMs);
        for (let n = 0; n < begins; n++) begunMs.push(nowMs);
      }
      const wish = starts.wish(nowMs, due);
      if (wish === undefined) continue;
      starts.noteSent(wish, nowMs);
      await set(nowMs + roundTripMs / 2);
      const answer = await takeStarts(db, limitTables, { ...question, ...wish, workerId: id });
      const atMs = nowMs + roundTripMs;
      worker.arrives = { atMs, act: () => starts.noteAnswer(answer, atMs) };
    }
  }
  return partUsed(begunMs, { limit, perMs });
}

test.each<Simulated>([
  { limit: 200, perMs: 1_000, workers: 1, roundTripMs: 2 },
  { limit: 200, perMs: 1_000, workers: 3, roundTripMs: 2 },
  { limit: 60, perMs: 6_000, workers: 2, roundTripMs: 20 },
])('93 to 95 % of a rate is used: %o', async (simulated) => {
  expect(Math.round(100 * (await usedOfQueue(simulated)))).toBeOneOf([93, 94, 95]);
});

test.each<Simulated>([
  { limit: 10, perMs: 1_000, workers: 2, roundTripMs: 20 },
  { limit: 200, perMs: 1_000, workers: 2, roundTripMs: 100 },
  { limit: 10, perMs: 100, workers: 2, roundTripMs: 2 },
])('but less of a short window or over a slow connection: %o', async (simulated) => {
  const used = await usedOfQueue(simulated);
  expect(used).toBeLessThan(0.9);
  expect(used).toBeGreaterThan(0.8);
});

/** What part of a group's rate a worker uses while jobs wait, and the most that a window has seen. */
async function usedOfGroup(perMs: number): Promise<number> {
  const limit = 20;
  const { db, client, set } = clocked();
  const tables = groupedTables();
  const [worker = 0] = await addWorkers(database.client);
  const starts = new GroupStarts(true);
  let clockMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => clockMs);
  const first = starts.ofClaim();
  clockMs += ROUND_TRIP_MS;
  if (first !== undefined) starts.noteAnswer(first);
  const ofClaim = starts.ofClaim();
  clock.mockRestore();
  await addGrouped(
    database.client,
    Array.from({ length: limit * (WINDOWS + 2) }, () => ({ group: 'r' })),
  );
  const begunMs: number[] = [];
  for (let nowMs = 0; nowMs < WINDOWS * perMs; ) {
    await set(nowMs);
    const { jobs } = await claimGroupedJobs(
      db,
      tables,
      groupClaimOf(worker, { limit: 100, limits: { rate: { limit, perMs } }, starts: ofClaim }),
    );
    await client`delete from queue_jobs where id = any(${jobs.map(({ id }) => id)}::int8[])`;
    for (const _ of jobs) begunMs.push(nowMs);
    // A worker claims again when some of the rate is free.
    const [row] = await client<{ ready: number }[]>`
      select extract(epoch from ready_at)::float8 * 1000 as ready from queue_groups`;
    nowMs = Math.max(nowMs + 1, Math.ceil(Number(row?.ready) - EPOCH_MS) + ROUND_TRIP_MS);
  }
  return partUsed(begunMs, { limit, perMs });
}

test.each([
  [1_000, 91],
  [2_000, 95],
  [6_000, 95],
])('of the rate of a group with a window of %i ms, %i per cent is used', async (perMs, percent) => {
  expect(Math.round(100 * (await usedOfGroup(perMs)))).toBe(percent);
});
