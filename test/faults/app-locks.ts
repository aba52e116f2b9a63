import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { monotonicMs } from './run-log.ts';

/** What a transaction of the app had locked, and when. */
export interface AppLock {
  readonly ids: readonly number[];
  readonly fromMs: number;
  readonly toMs: number;
}

export interface AppLocksOptions {
  readonly url: string;
  /** How many transactions are open at once. */
  readonly transactions?: number;
  /** How long each of them goes on with other work. */
  readonly heldMs: number;
}

/** How an app locks a job's row, by itself or through the library: for itself, for a row that refers to it, to change it. */
const LOCKS = [
  'select id from queue_jobs where id = any($1::int8[]) order by id for update',
  'select id from queue_jobs where id = any($1::int8[]) order by id for key share',
  "update queue_jobs set cancel_reason = 'not yet' where id = any($1::int8[]) returning id",
];

/** Of the running and of the waiting jobs so many in each transaction; no two transactions wait for each other. */
const CANDIDATES = `
  (select id from queue_jobs where worker_id is not null and id % $1 = $2 order by random() limit 3)
  union all (select id from queue_jobs where worker_id is null and id % $1 = $2 order by random() limit 2)`;

/** Transactions of the app that lock rows of running and waiting jobs, and then take their time. All of them roll back. */
export class AppLocks {
  readonly #heldMs: number;
  readonly #pool: pg.Pool;
  readonly #over: Promise<unknown>;
  readonly #taken: AppLock[] = [];
  #ending = false;

  constructor({ url, transactions = 2, heldMs }: AppLocksOptions) {
    this.#heldMs = heldMs;
    this.#pool = new pg.Pool({ connectionString: url, max: transactions, application_name: 'app-locks' });
    this.#over = Promise.all(
      Array.from({ length: transactions }, (_, index) => this.#run(index, transactions)),
    );
    // A test that fails must not leave its locks to the next.
    onTestFinished(() => this.end());
  }

  /** What has been locked so far. */
  get taken(): readonly AppLock[] {
    return this.#taken;
  }

  /** Locks nothing more; resolves when nothing is locked any more. */
  async end(): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    await this.#over;
    await this.#pool.end();
  }

  /** Whether a job was locked at some time in between. */
  met(id: number, fromMs: number, toMs: number): boolean {
    return this.#taken.some((lock) => lock.ids.includes(id) && lock.fromMs <= toMs && lock.toMs >= fromMs);
  }

  async #run(index: number, transactions: number): Promise<void> {
    for (let turn = index; !this.#ending; turn++) {
      const client = await this.#pool.connect();
      try {
        const { rows: candidates } = await client.query<{ id: string }>(CANDIDATES, [transactions, index]);
        await client.query('begin');
        // From here on a worker may have to wait for it.
        const fromMs = monotonicMs();
        const ids = candidates.map(({ id }) => id);
        const { rows } = await client.query<{ id: string }>(LOCKS[turn % LOCKS.length] ?? '', [ids]);
        if (rows.length > 0) await delay(this.#heldMs);
        await client.query('rollback');
        if (rows.length > 0)
          this.#taken.push({ ids: rows.map(({ id }) => Number(id)), fromMs, toMs: monotonicMs() });
        else await delay(20);
      } finally {
        client.release();
      }
    }
  }
}
