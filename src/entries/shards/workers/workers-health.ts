import type { WorkerHealth } from '../../../index.ts';

/** What {@link Workers.health} returns, and `healthHandler(workers)` answers. */
export interface WorkersHealth<TName extends string = string> extends WorkerHealth {
  /** Whether no worker has broken: see `WorkerHealth`. An outage of a database changes nothing about it. */
  readonly live: boolean;
  /**
   * Whether the worker of at least one shard takes jobs. An outage of one database must not keep a deploy
   * from going on for the others; {@link reasons} names the shards whose workers take none.
   */
  readonly ready: boolean;
  /** The longest time of all shards that have started, in milliseconds; `undefined` before the first. */
  readonly lastBeatMs: number | undefined;
  /** By part, the longest time of all shards, in milliseconds. */
  readonly unansweredMs: WorkerHealth['unansweredMs'];
  /** Whether the workers of all shards hear notifications. */
  readonly listening: boolean;
  /** How many handlers run, in all shards together. */
  readonly busy: number;
  /** How many may run at once, in all shards together. */
  readonly slots: number;
  /** Why a shard's worker is not live or not ready, a sentence each, with the shard's name. */
  readonly reasons: readonly string[];
  /** The health of each shard's worker. */
  readonly shards: Readonly<Record<TName, WorkerHealth>>;
}

/** The health of all shards together. */
export function healthOfAll<TName extends string>(
  shards: Readonly<Record<TName, WorkerHealth>>,
): WorkersHealth<TName> {
  const each: readonly WorkerHealth[] = Object.values(shards);
  const sum = (of: (health: WorkerHealth) => number) => each.reduce((total, one) => total + of(one), 0);
  const beats = each.flatMap(({ lastBeatMs }) => lastBeatMs ?? []);
  const unansweredMs: { -readonly [P in keyof WorkerHealth['unansweredMs']]: number } = {};
  for (const one of each) {
    // The keys of this object are parts of a worker.
    for (const [part, ms] of Object.entries(one.unansweredMs) as [keyof typeof unansweredMs, number][]) {
      unansweredMs[part] = Math.max(unansweredMs[part] ?? 0, ms);
    }
  }
  return {
    live: each.every(({ live }) => live),
    ready: each.some(({ ready }) => ready),
    lastBeatMs: beats.length === 0 ? undefined : Math.max(...beats),
    unansweredMs,
    listening: each.every(({ listening }) => listening),
    busy: sum(({ busy }) => busy),
    slots: sum(({ slots }) => slots),
    reasons: Object.entries<WorkerHealth>(shards).flatMap(([shard, { reasons }]) =>
      reasons.map((reason) => `${shard}: ${reason}`),
    ),
    shards,
  };
}
