import { setTimeout as delay } from 'node:timers/promises';
import { drizzle } from 'drizzle-orm/node-postgres';
import { createQueue } from 'drizzle-queue';
import pg from 'pg';
import { until } from '../support/until.ts';
import {
  type blocking,
  type hogging,
  light,
  type loadKinds,
  single,
  transactional,
  type Work,
} from './fixtures/ledger-jobs.ts';

/** The kinds whose effect commits together with the end of the job. */
const EXACTLY_ONCE: readonly string[] = [transactional.kind];
const NO_EFFECT: readonly string[] = [light.kind, single.kind];

/**
 * The books of one test, in the same database as the queue: which enqueues have committed, and which effects of handlers. And
 * a connection to it that no fault is aimed at.
 */
export class Ledger {
  readonly pool: pg.Pool;
  readonly db: ReturnType<typeof openDrizzle>;
  readonly queue = createQueue();
  /** The numbers of the enqueues whose commit was acknowledged. */
  readonly acknowledged = new Set<number>();
  /** The numbers of those that were rolled back on purpose. */
  readonly rolledBack = new Set<number>();
  #lastN = 0;

  constructor(url: string) {
    this.pool = new pg.Pool({ connectionString: url, max: 4, application_name: 'ledger' });
    // As in the worker processes: connections break here.
    this.pool.on('error', () => {});
    this.pool.on('connect', (client) => client.on('error', () => {}));
    this.db = openDrizzle(this.pool);
  }

  /** Creates its tables. */
  async create(): Promise<void> {
    await this.pool.query(`
      create table ledger_enqueued (n int primary key, job_id bigint not null);
      create table ledger_effects (n int not null, job_id bigint not null, fence int not null, process text not null)`);
  }

  /** Forgets everything, in the queue too. No worker may run. */
  async clear(): Promise<void> {
    await this.pool.query(
      'truncate ledger_enqueued, ledger_effects, queue_jobs, queue_results, queue_workers',
    );
    this.acknowledged.clear();
    this.rolledBack.clear();
  }

  /**
   * Enqueues jobs in one transaction, beside their entry in the books.
   *
   * @param rollBack leaves nothing of it, on purpose
   * @returns the ids of the jobs
   */
  async enqueue(
    jobs: readonly { readonly job: LedgerJob; readonly work: Omit<Work, 'n'>; readonly delayMs?: number }[],
    { rollBack = false }: { readonly rollBack?: boolean } = {},
  ): Promise<number[]> {
    const numbers: number[] = [];
    const ids: number[] = [];
    try {
      await this.db.transaction(async (tx) => {
        for (const { job, work, delayMs } of jobs) {
          const n = ++this.#lastN;
          const { id } = await this.queue.enqueue(tx, job, { n, ...work }, { delayMs });
          await tx.execute(`insert into ledger_enqueued (n, job_id) values (${n}, ${id})`);
          numbers.push(n);
          ids.push(id);
        }
        if (rollBack) throw new RollBack();
      });
    } catch (error) {
      if (!(error instanceof RollBack)) throw error;
      for (const n of numbers) this.rolledBack.add(n);
      return [];
    }
    for (const n of numbers) this.acknowledged.add(n);
    return ids;
  }

  /** Enqueues many jobs, in two statements. */
  async enqueueMany(job: LedgerJob, count: number, maxWorkMs: number): Promise<void> {
    const works = Array.from({ length: count }, () => ({
      payload: { n: ++this.#lastN, workMs: Math.round(Math.random() * maxWorkMs) },
    }));
    await this.db.transaction(async (tx) => {
      const enqueued = await this.queue.enqueueMany(tx, job, works);
      const rows = enqueued.map(({ id }, index) => `(${works[index]?.payload.n}, ${id})`);
      await tx.execute(`insert into ledger_enqueued (n, job_id) values ${rows.join(',')}`);
    });
    for (const { payload } of works) this.acknowledged.add(payload.n);
  }

  /**
   * Waits until nothing is left to do.
   *
   * @throws when that takes longer: who holds what is left
   */
  async settled(timeoutMs = 60_000): Promise<void> {
    await until(async () => (await this.count('queue_jobs')) === 0, { timeoutMs, intervalMs: 100 }).catch(
      async () => {
        const left = await this.rows(
          `select j.worker_id, w.name, count(*), array_agg(j.id || '/' || j.fence order by j.id)
           from queue_jobs as j left join queue_workers as w on w.id = j.worker_id group by 1, 2`,
        );
        throw new Error(`not settled within ${timeoutMs} ms: ${JSON.stringify(left)}`);
      },
    );
  }

  async count(table: string): Promise<number> {
    return Number(await this.value(`select count(*) from ${table}`));
  }

  /** The first value that a query returns. */
  async value(text: string, values: readonly unknown[] = []): Promise<unknown> {
    const [row] = await this.rows<Record<string, unknown>>(text, values);
    return row && Object.values(row)[0];
  }

  /** The rows that a query returns. Asked again when the connection was broken: many are, here. */
  async rows<T extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return (await this.pool.query<T>(text, [...values])).rows;
      } catch (error) {
        if (!isConnectionLoss(error) || attempt === 20) throw error;
        await delay(50);
      }
    }
  }

  /** The ids of the jobs that a worker holds. */
  async heldBy(workerId: number): Promise<number[]> {
    const rows = await this.rows<{ id: string }>('select id from queue_jobs where worker_id = $1', [
      workerId,
    ]);
    return rows.map(({ id }) => Number(id));
  }

  async close(): Promise<void> {
    // Not for ever: a connection that broke under its `begin` is never given back by drizzle-orm 0.45.
    await Promise.race([this.pool.end(), delay(5_000)]);
  }
}

/** A kind of job whose handler keeps books. */
export type LedgerJob =
  | (typeof loadKinds)[number]
  | typeof hogging
  | typeof blocking
  | typeof light
  | typeof single;

/** Whether a kind leaves no effect in the books. */
export function hasNoEffect(kind: string): boolean {
  return NO_EFFECT.includes(kind);
}

/** Whether a kind's effect must be in the books exactly once. */
export function isExactlyOnce(kind: string): boolean {
  return EXACTLY_ONCE.includes(kind);
}

/** Whether a query failed for its connection. */
function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return /^(57P0|08|ECONN|EPIPE)/.test(code) || error.message.startsWith('Connection terminated');
}

class RollBack extends Error {}

function openDrizzle(client: pg.Pool) {
  return drizzle({ client });
}
