import type { EnqueuerName } from '../../child/enqueuer.ts';
import type { System } from '../../harness/system.ts';
import { bullmqOnPostgres } from '../../systems/bullmq/system.ts';
import { drizzleQueue } from '../../systems/drizzle-queue/system.ts';
import { graphileBest, graphileDefaults } from '../../systems/graphile-worker/system.ts';
import { pgBossBest, pgBossListening } from '../../systems/pg-boss/system.ts';

/** Jobs that arrive, and who waits for them. */
export interface Load {
  readonly name: string;
  /** Whether it is a peer of ours. */
  readonly isPeer: boolean;
  readonly system: System;
  readonly enqueuer: EnqueuerName;
  readonly perSecond: number;
  readonly jobs: number;
  /** Of every so-manieth job the transaction stays open for `openMs`; of none when 0. */
  readonly lateEvery: number;
  readonly openMs: number;
}

export const LISTENING = 'drizzle-queue, LISTEN';
export const POLLING = 'drizzle-queue, polling';

const listening = drizzleQueue('LISTEN', { keepResult: false });
const polling = drizzleQueue('polling', { keepResult: false, worker: { listen: false } });

const RATES = [
  { perSecond: 1, seconds: 10 },
  { perSecond: 100, seconds: 5 },
  { perSecond: 1_000, seconds: 4 },
];

export function loadsOf(quick: boolean): Load[] {
  const load = (system: System, enqueuer: EnqueuerName, perSecond: number, seconds: number): Load => ({
    name: system.name,
    isPeer: enqueuer !== 'drizzle-queue',
    system,
    enqueuer,
    perSecond,
    jobs: Math.ceil(perSecond * (quick ? 1 : seconds)),
    lateEvery: 0,
    openMs: 0,
  });
  const rates = quick ? RATES.slice(1, 2) : RATES;
  const ofEachRate = (system: System, enqueuer: EnqueuerName): Load[] =>
    rates.map(({ perSecond, seconds }) => load(system, enqueuer, perSecond, seconds));
  const late = (system: System, enqueuer: EnqueuerName): Load => ({
    ...load(system, enqueuer, 50, 6),
    name: `${system.name}, a tenth late`,
    lateEvery: 10,
    openMs: quick ? 200 : 2_000,
  });
  const ofAll = (system: System, enqueuer: EnqueuerName): Load[] => [
    ...ofEachRate(system, enqueuer),
    late(system, enqueuer),
  ];
  return [
    ...ofAll(listening, 'drizzle-queue'),
    ...ofAll(polling, 'drizzle-queue'),
    ...ofAll(graphileBest, 'graphile-worker'),
    ...ofEachRate(graphileDefaults, 'graphile-worker'),
    ...ofAll(pgBossListening, 'pg-boss'),
    load(pgBossBest, 'pg-boss', 100, 4),
    load(bullmqOnPostgres, 'bullmq', 100, 4),
  ];
}
