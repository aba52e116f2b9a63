import { setTimeout as delay } from 'node:timers/promises';
import type { Connection } from '../support/test-database.ts';

/** What is in use of one limit at one moment. */
export interface Use {
  /** Handlers that run, by their ledger. */
  readonly running: number;
  /** Slots that workers have, by the table. */
  readonly leased: number;
}

/**
 * Looks again and again, in one snapshot each, how many handlers run in workers that nobody has declared gone,
 * and how many slots these have. It knows nothing but the tables and the handlers' own ledger. What a worker has begun before it was
 * declared gone by mistake does not count, though it has come back: see `GroupWatcher`.
 */
export class Watcher {
  readonly #connection: Connection;
  readonly #over = new AbortController();
  #watching: Promise<void> = Promise.resolve();
  looks = 0;
  /** By limit (`queue` or `queue/kind`), the most that it ever saw. */
  readonly most = new Map<string, Use>();
  /** By limit, in how many looks so many ran. */
  readonly running = new Map<string, Map<number, number>>();
  /** The same of leases. */
  readonly leased = new Map<string, Map<number, number>>();

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

  /** Forgets what it has seen. */
  reset(): void {
    this.looks = 0;
    this.most.clear();
    this.running.clear();
    this.leased.clear();
  }

  /** In which share of the looks at least so many ran, or were leased. */
  shareWith(what: 'running' | 'leased', limit: string, least: number): number {
    const counts = [...(this[what].get(limit) ?? [])].filter(([count]) => count >= least);
    return counts.reduce((sum, [, looks]) => sum + looks, 0) / Math.max(this.looks, 1);
  }

  async #watch(): Promise<void> {
    while (!this.#over.signal.aborted) {
      await this.look();
      await delay(2);
    }
  }

  async look(): Promise<ReadonlyMap<string, Use>> {
    const rows = await this.#connection.client<({ name: string } & Use)[]>`
      with alive as materialized (select id, started_at from queue_workers),
      runs as materialized (
        select l.queue, l.kind from ledger l join alive as a on a.id = l.worker_id
        where l.ended_at is null and l.began_at >= a.started_at
      ),
      leases as materialized (
        select u.queue, u.kind, (e.lease ->> 0)::int as has
        from queue_usage u cross join jsonb_each(u.leases) as e(worker, lease)
        where e.worker in (select id::text from alive)
      )
      select n.name, coalesce(sum(n.running), 0)::int as running, coalesce(sum(n.leased), 0)::int as leased from (
        select queue as name, 1 as running, 0 as leased from runs
        union all select queue || '/' || kind, 1, 0 from runs
        union all select case kind when '' then queue else queue || '/' || kind end, 0, has from leases
      ) as n group by n.name`;
    this.looks++;
    for (const { name, running, leased } of rows) {
      const { running: mostRunning = 0, leased: mostLeased = 0 } = this.most.get(name) ?? {};
      this.most.set(name, { running: Math.max(running, mostRunning), leased: Math.max(leased, mostLeased) });
      count(this.running, name, running);
      count(this.leased, name, leased);
    }
    return new Map(rows.map(({ name, running, leased }) => [name, { running, leased }]));
  }
}

function count(counts: Map<string, Map<number, number>>, name: string, value: number): void {
  const ofName = counts.get(name) ?? new Map<number, number>();
  counts.set(name, ofName.set(value, (ofName.get(value) ?? 0) + 1));
}
