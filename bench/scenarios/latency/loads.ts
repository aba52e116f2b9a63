import type { EnqueuerName } from '../../child/enqueuer.ts';
import type { System } from '../../harness/system.ts';
import { bullmqOnPostgres } from '../../systems/bullmq/system.ts';
import { drizzleQueue } from '../../systems/drizzle-queue/system.ts';
import { graphileBest, graphileDefaults } from '../../systems/graphile-worker/system.ts';
import { pgBossBest, pgBossListening } from '../../systems/pg-boss/system.ts';

/** Jobs that arrive, and who waits for them. */
export interface Load {
  readonly name: string;
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
    system,
    enqueuer,
    perSecond,
    jobs: Math.ceil(perSecond * (quick ? 1 : seconds)),
    lateEvery: 0,
    openMs: 0,
  });
  const rates = quick ? RATES.slice(1, 2) : RATES;
  const own = (system: System): Load[] => [
    ...rates.map(({ perSecond, seconds }) => load(system, 'drizzle-queue', perSecond, seconds)),
    {
      ...load(system, 'drizzle-queue', 50, 6),
      name: `${system.name}, a tenth late`,
      lateEvery: 10,
      openMs: quick ? 200 : 2_000,
    },
  ];
  return [
    ...own(listening),
    ...own(polling),
    load(graphileBest, 'graphile-worker', 100, 4),
    load(graphileDefaults, 'graphile-worker', 100, 4),
    load(pgBossListening, 'pg-boss', 100, 4),
    load(pgBossBest, 'pg-boss', 100, 4),
    load(bullmqOnPostgres, 'bullmq', 100, 4),
  ];
}
