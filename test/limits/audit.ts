import type { LedgerDatabase } from './fleet.ts';

/** One run of a handler, with what the tables have seen of it; all times are the database's, in microseconds. */
export interface Run {
  readonly group: string;
  readonly job: number;
  readonly worker: number;
  readonly beganAt: number;
  readonly endedAt: number | null;
  /** How the handler has ended. */
  readonly outcome: 'completed' | 'retried' | 'snoozed' | 'discarded' | null;
  /** When the claim that it comes from was sent. */
  readonly claimedAt: number;
  /** The job's `run_at` at that claim: with the id its place in the group. */
  readonly runAt: number;
  /** When its worker was removed after that; `null` while it lives. */
  readonly departedAt: number | null;
}

/** A claim of a job. */
export interface Start {
  readonly group: string;
  readonly job: number;
  readonly at: number;
  readonly createdAt: number;
  readonly cost: number;
  readonly fence: number;
}

const us = (time: string) => `(extract(epoch from ${time}) * 1000000)::int8::text`;

/**
 * Triggers that record each claim of a job and each end of a worker, by the database's clock, in the transactions that make them: what
 * the row of a group counts, and what excuses a job that begins again.
 */
export class Audit {
  readonly #database: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#database = database;
  }

  async create(): Promise<void> {
    await this.#database.client.unsafe(`
      create table starts (queue text not null, group_key text, job_id bigint not null, fence int not null, cost int not null,
        created_at timestamptz not null, run_at timestamptz not null, at timestamptz not null);
      create table departures (worker_id bigint not null, at timestamptz not null);
      create table actions (queue text not null, group_key text not null, at timestamptz not null);
      create function note_start() returns trigger language plpgsql as $$ begin
        insert into starts values (new.queue, new.group_key, new.id, new.fence - floor(extract(epoch from new.created_at) * 1000), coalesce(new.weight, 1), new.created_at, new.run_at,
          statement_timestamp());
        return null;
      end $$;
      create function note_departure() returns trigger language plpgsql as $$ begin
        insert into departures values (old.id, clock_timestamp());
        return null;
      end $$;
      create trigger note_start after update on queue_jobs for each row when (new.fence > old.fence) execute function note_start();
      create trigger note_departure after delete on queue_workers for each row execute function note_departure()`);
  }

  /** The database's time, in microseconds. */
  async now(): Promise<number> {
    const [row] = await this.#database.client.unsafe<{ now: string }[]>(
      `select ${us('clock_timestamp()')} as now`,
    );
    return Number(row?.now);
  }

  /** Notes that somebody is about to let a group go on. */
  async act(queue: string, group: string): Promise<void> {
    await this.#database.client`insert into actions values (${queue}, ${group}, clock_timestamp())`;
  }

  /** The runs of a queue by group, each in the order of their beginnings. */
  async runs(queue: string): Promise<Map<string, Run[]>> {
    const rows = await this.#database.client.unsafe<Record<string, string | null>[]>(
      `select l.group_key, l.job_id, l.worker_id, l.outcome, ${us('l.began_at')} as began, ${us('l.ended_at')} as ended,
         ${us('s.at')} as claimed, ${us('s.run_at')} as run_at,
         (select ${us('min(d.at)')} from departures as d where d.worker_id = l.worker_id and d.at >= l.began_at) as departed
       from ledger as l left join starts as s on s.job_id = l.job_id and s.fence = l.fence
       where l.queue = $1 order by l.began_at, l.id`,
      [queue],
    );
    const runs = rows.map((row): Run => {
      if (row.claimed === null) throw new Error(`job ${row.job_id} ran without a claim`);
      return {
        group: String(row.group_key),
        job: Number(row.job_id),
        worker: Number(row.worker_id),
        beganAt: Number(row.began),
        endedAt: row.ended === null ? null : Number(row.ended),
        // Only the fixture's handlers write it.
        outcome: row.outcome as Run['outcome'],
        claimedAt: Number(row.claimed),
        runAt: Number(row.run_at),
        departedAt: row.departed === null ? null : Number(row.departed),
      };
    });
    return byGroup(runs);
  }

  /** The claims of a queue by group, each in the order of time. */
  async starts(queue: string): Promise<Map<string, Start[]>> {
    const rows = await this.#database.client.unsafe<Record<string, string>[]>(
      `select group_key, job_id, cost, fence, ${us('at')} as at, ${us('created_at')} as created from starts
       where queue = $1 order by at, job_id`,
      [queue],
    );
    return byGroup(
      rows.map((row) => ({
        group: String(row.group_key),
        job: Number(row.job_id),
        at: Number(row.at),
        createdAt: Number(row.created),
        cost: Number(row.cost),
        fence: Number(row.fence),
      })),
    );
  }

  /** The calls of a queue's handlers, or of those for one group, in the order of time: what a rate counts. */
  async calls(queue: string, group?: string): Promise<Start[]> {
    const rows = await this.#database.client.unsafe<Record<keyof Start, string>[]>(
      `select l.group_key as group, l.job_id as job, l.called_ms * 1000 as at, ${us('s.created_at')} as "createdAt", s.cost, s.fence
       from ledger as l join starts as s on s.job_id = l.job_id and s.fence = l.fence
       where l.queue = $1 and l.group_key = coalesce($2, l.group_key) order by l.called_ms`,
      [queue, group ?? null],
    );
    return rows.map(({ group, job, at, createdAt, cost, fence }) => ({
      group,
      job: Number(job),
      at: Number(at),
      createdAt: Number(createdAt),
      cost: Number(cost),
      fence: Number(fence),
    }));
  }

  /** When somebody let groups of a queue go on. */
  async actions(queue: string): Promise<Map<string, { readonly group: string; readonly at: number }[]>> {
    const rows = await this.#database.client.unsafe<{ group_key: string; at: string }[]>(
      `select group_key, ${us('at')} as at from actions where queue = $1 order by at`,
      [queue],
    );
    return byGroup(rows.map(({ group_key, at }) => ({ group: group_key, at: Number(at) })));
  }
}

function byGroup<T extends { readonly group: string }>(rows: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const known = groups.get(row.group);
    if (known === undefined) groups.set(row.group, [row]);
    else known.push(row);
  }
  return groups;
}
