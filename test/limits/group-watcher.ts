import { setTimeout as delay } from 'node:timers/promises';
import type { Connection } from '../support/test-database.ts';

/** What of one group is in use at one moment, in workers that nobody has declared gone. */
export interface GroupUse {
  /** Jobs that they hold, by the table. */
  readonly held: number;
  /** Handlers that run, by their ledger. */
  readonly running: number;
  /** How many of the workers hold some of it. */
  readonly holders: number;
}

interface Limit {
  readonly limit: number;
  /** From this look on nothing more may be above the limit than in the look before. */
  readonly fromMs: number;
}

const NOTHING: GroupUse = { held: 0, running: 0, holders: 0 };
/** A claim that has not seen a lower limit yet is over after this. */
const GRACE_MS = 2_000;

/**
 * Looks again and again, in one snapshot each, how much of each group living workers hold and run. It knows nothing but the tables and the
 * handlers' own ledger. A worker that was declared gone by mistake comes back with a row of its own id that starts anew: what it has begun
 * before was free for others meanwhile, so it does not count, though its handlers may still run.
 */
export class GroupWatcher {
  readonly #connection: Connection;
  readonly #over = new AbortController();
  #watching: Promise<void> = Promise.resolve();
  readonly #limits = new Map<string, Limit>();
  #last: ReadonlyMap<string, GroupUse> = new Map();
  looks = 0;
  /** By `queue/group`, the most that it ever saw. */
  readonly most = new Map<string, GroupUse>();
  /** Where it saw more than the limits that it was told. */
  readonly exceeded: string[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  start(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#watching;
  }

  /** Judges a group no more, until its next limit is told: before a change, which others may see first. */
  ignore(group: string): void {
    this.#limits.delete(group);
  }

  /** From now on a group has this limit, and the most that was seen of it is forgotten; call it after the commit. */
  limit(group: string, limit: number): void {
    this.#limits.set(group, { limit, fromMs: performance.now() + GRACE_MS });
    this.most.delete(group);
  }

  /** Whether so many of a group were held since its limit was told, and the time for older claims is over. */
  hasReached(group: string, held: number): boolean {
    const { fromMs = Number.POSITIVE_INFINITY } = this.#limits.get(group) ?? {};
    return performance.now() > fromMs && (this.most.get(group)?.held ?? 0) >= held;
  }

  async #watch(): Promise<void> {
    while (!this.#over.signal.aborted) {
      await this.look();
      await delay(3);
    }
  }

  async look(): Promise<void> {
    const sentMs = performance.now();
    const rows = await this.#connection.client<({ name: string } & GroupUse)[]>`
      with alive as materialized (select id, started_at from queue_workers)
      select n.name, sum(n.held)::int as held, sum(n.running)::int as running,
        count(distinct n.worker_id) filter (where n.held > 0)::int as holders
      from (
        select j.queue || '/' || j.group_key as name, 1 as held, 0 as running, j.worker_id
        from queue_jobs as j join alive as a on a.id = j.worker_id
        where j.claimed_at is null or j.claimed_at >= a.started_at
        union all
        select l.queue || '/' || l.group_key, 0, 1, l.worker_id
        from ledger as l join alive as a on a.id = l.worker_id
        where l.ended_at is null and l.began_at >= a.started_at
      ) as n group by n.name`;
    this.looks++;
    const now = new Map(rows.map(({ name, held, running, holders }) => [name, { held, running, holders }]));
    for (const [name, use] of now) {
      const { held, running, holders } = this.most.get(name) ?? NOTHING;
      this.most.set(name, {
        held: Math.max(held, use.held),
        running: Math.max(running, use.running),
        holders: Math.max(holders, use.holders),
      });
      const told = this.#limits.get(name);
      if (told === undefined || sentMs < told.fromMs) continue;
      // What was above a limit when it was lowered may only become less.
      const before = this.#last.get(name) ?? NOTHING;
      for (const what of ['held', 'running'] as const) {
        const allowed = Math.max(told.limit, before[what]);
        if (use[what] > allowed) this.exceeded.push(`${name}: ${use[what]} ${what}, not ${allowed}`);
      }
    }
    this.#last = now;
  }
}
