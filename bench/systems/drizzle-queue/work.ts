import { setTimeout as sleep } from 'node:timers/promises';
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  handle,
  type KeepResult,
  limitsIn,
  type QueueLimits,
  unvalidated,
  type Worker,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import pg from 'pg';
import postgres from 'postgres';
import type { Program } from '../../child/programs.ts';

export interface DrizzleQueueOptions {
  readonly driver: 'postgres.js' | 'node-postgres';
  readonly keepResult: KeepResult;
  /** How many queues; the worker serves all of them. The jobs are in the first. */
  readonly queues?: number;
  /** Serve another queue than the one that the jobs are in: listen, with nothing to do. */
  readonly servesOther?: boolean;
  /** The limits of the queue that the jobs are in. @default none */
  readonly limits?: QueueLimits;
  /** How many workers in the process. */
  readonly workers?: number;
  /** Whether each of them has a pool of its own. @default false: all share one */
  readonly poolEach?: boolean;
  /** How long a job runs, unless its worker stops before. @default 0 */
  readonly holdMs?: number;
  /** How many connections the app's pool has at most. @default the driver's */
  readonly poolSize?: number;
  /** Whether postgres.js may prepare; not behind a pooler in transaction mode. @default true */
  readonly prepare?: boolean;
  /** Further options of `createWorker`. */
  readonly worker?: Readonly<Record<string, unknown>>;
}

/** drizzle-queue with its default options: one worker, one handler per job. */
export const work: Program = async ({ url, onJob }, options) => {
  const {
    driver,
    keepResult,
    queues = 1,
    servesOther = false,
    limits,
    workers = 1,
    poolEach = false,
    holdMs = 0,
    poolSize,
    prepare = true,
    worker,
  } = options as DrizzleQueueOptions;
  const pools = Array.from({ length: poolEach ? workers : 1 }, () => connect(driver, url, poolSize, prepare));
  const jobs = Array.from({ length: queues }, (_, index) => {
    const name = index === 0 && !servesOther ? 'bench' : `bench-${index}`;
    return defineJob(name, { payload: unvalidated<{ n: number }>(), queue: name, keepResult });
  });
  const queue =
    limits === undefined ? createQueue() : createQueue({ limits: limitsIn(control, { bench: limits }) });
  const started: Worker[] = [];
  for (let index = 0; index < workers; index++) {
    const pool = pools[index % pools.length];
    if (pool === undefined) throw new TypeError('There is a pool for each worker, or one for all');
    const one = createWorker(pool.db, {
      log: false,
      queue,
      handlers: jobs.map((job) =>
        handle(job, ({ payload, signal }) => {
          onJob(payload.n);
          // A stop ends it, and gives the job back.
          return holdMs > 0 ? sleep(holdMs, undefined, { signal }) : undefined;
        }),
      ),
      ...worker,
    });
    await one.start();
    started.push(one);
  }
  return async () => {
    await Promise.all(started.map((one) => one.stop()));
    await Promise.all(pools.map(({ close }) => close()));
  };
};

function connect(
  driver: DrizzleQueueOptions['driver'],
  url: string,
  max: number | undefined,
  prepare: boolean,
): { db: Database; close(): Promise<void> } {
  const pool = max === undefined ? {} : { max };
  if (driver === 'postgres.js') {
    const client = postgres(url, { onnotice: () => {}, prepare, ...pool });
    return { db: drizzlePostgresJs({ client }), close: () => client.end() };
  }
  const client = new pg.Pool({ connectionString: url, ...pool });
  return { db: drizzleNodePostgres({ client }), close: () => client.end() };
}
