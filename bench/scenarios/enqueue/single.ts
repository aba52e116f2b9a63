import { drizzle } from 'drizzle-orm/node-postgres';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { Pool } from 'pg';
import { nowMs } from '../../child/counter.ts';
import { connectApp } from '../../child/orders.ts';
import { median } from '../../median.ts';

export interface SingleRequest {
  readonly driver: 'postgres.js' | 'node-postgres';
  readonly url: string;
  readonly measuredMs: number;
}

/** What one call takes, in microseconds. */
export interface Cost {
  /** Of the process's processor time. */
  readonly cpu: number;
  readonly time: number;
}

export type SingleResult = Readonly<Record<'bare' | 'enqueue', Cost>>;

interface Connection {
  readonly db: PgDatabase<PgQueryResultHKT>;
  close(): Promise<void>;
}

const CALLS = 20;
const job = defineJob('bench', { payload: unvalidated<{ n: number }>(), queue: 'bench' });

/** What an enqueue costs the process, and an insert of the same columns by Drizzle, a few calls of each in turns. */
export async function single({ driver, url, measuredMs }: SingleRequest): Promise<SingleResult> {
  const { db, close } = connect(driver, url);
  const queue = createQueue();
  const bare = new Samples(async (n) => {
    const now = new Date();
    const values = { queue: 'bench', kind: 'bench', payload: { n }, priority: 5, runAt: now, createdAt: now };
    const more = { maxAttempts: 20, uniqueKey: null, metadata: {} };
    await db
      .insert(queueJobs)
      .values({ ...values, ...more })
      .returning({ id: queueJobs.id });
  });
  const enqueue = new Samples((n) => queue.enqueue(db, job, { n }));
  const startMs = nowMs();
  while (nowMs() < startMs + measuredMs) {
    await bare.take();
    await enqueue.take();
  }
  await close();
  return { bare: bare.cost(), enqueue: enqueue.cost() };
}

/** One connection, whatever the driver. */
function connect(driver: SingleRequest['driver'], url: string): Connection {
  if (driver === 'postgres.js') return connectApp(url, 1);
  const client = new Pool({ connectionString: url, max: 1 });
  return { db: drizzle({ client }), close: () => client.end() };
}

class Samples {
  readonly #call: (n: number) => Promise<unknown>;
  readonly #cpu: number[] = [];
  readonly #times: number[] = [];

  constructor(call: (n: number) => Promise<unknown>) {
    this.#call = call;
  }

  async take(): Promise<void> {
    const before = process.cpuUsage();
    for (let n = 0; n < CALLS; n++) {
      const startMs = nowMs();
      await this.#call(n);
      this.#times.push((nowMs() - startMs) * 1_000);
    }
    const { user, system } = process.cpuUsage(before);
    this.#cpu.push((user + system) / CALLS);
  }

  /** Medians, without the first fifth: the code is not warm yet. */
  cost(): Cost {
    const warm = (values: readonly number[]) => median(values.slice(Math.floor(values.length / 5)));
    return { cpu: warm(this.#cpu), time: warm(this.#times) };
  }
}
