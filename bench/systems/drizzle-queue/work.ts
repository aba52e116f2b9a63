import { setTimeout as sleep } from 'node:timers/promises';
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  type HandlerContext,
  handle,
  type KeepResult,
  limitsIn,
  type QueueLimits,
  type Transaction,
  unvalidated,
  type Worker,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import pg from 'pg';
import postgres from 'postgres';
import { wait } from '../../child/handling.ts';
import { insertOrder } from '../../child/orders.ts';
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
  /** How long a handler waits before its job is done. @default 0 */
  readonly waitMs?: number;
  /**
   * Each handler inserts an order in a transaction of its own: `plain` leaves the end of the job to the worker, `completing` ends it
   * there, by `complete(tx)`. @default none
   */
  readonly orders?: 'plain' | 'completing';
  /** How many connections the app's pool has at most. @default the driver's */
  readonly poolSize?: number;
  /** Whether postgres.js may prepare; not behind a pooler in transaction mode. @default true */
  readonly prepare?: boolean;
  /** Further options of `createWorker`. */
  readonly worker?: Readonly<Record<string, unknown>>;
}

/** drizzle-queue with its default options: one worker, one handler per job. */
export const work: Program = async ({ url, onJob }, options) => {
  const settings = options as DrizzleQueueOptions;
  const {
    driver,
    keepResult,
    queues = 1,
    servesOther = false,
    limits,
    workers = 1,
    poolEach = false,
    poolSize,
    prepare = true,
    worker,
  } = settings;
  const pools = Array.from({ length: poolEach ? workers : 1 }, () => connect(driver, url, poolSize, prepare));
  const jobs = Array.from({ length: queues }, (_, index) => {
    const name = index === 0 && !servesOther ? 'bench' : `bench-${index}`;
    return jobOf(name, keepResult);
  });
  const queue =
    limits === undefined ? createQueue() : createQueue({ limits: limitsIn(control, { bench: limits }) });
  const started: Worker[] = [];
  for (let index = 0; index < workers; index++) {
    const pool = pools[index % pools.length];
    if (pool === undefined) throw new TypeError('There is a pool for each worker, or one for all');
    const run = handlerOf(settings, pool, onJob);
    const one = createWorker(pool.db, {
      log: false,
      queue,
      handlers: jobs.map((job) => handle(job, run)),
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

const jobOf = (name: string, keepResult: KeepResult) =>
  defineJob(name, { payload: unvalidated<{ n: number }>(), queue: name, keepResult });

type Context = HandlerContext<ReturnType<typeof jobOf>>;

/** What a job does; only what it needs is asked of its context. */
function handlerOf(
  { holdMs = 0, waitMs = 0, orders }: DrizzleQueueOptions,
  pool: Pool,
  onJob: (n: number) => void,
): (context: Context) => Promise<void> | void {
  if (orders === 'plain') return ({ payload }) => pool.writeOrder().then(() => onJob(payload.n));
  if (orders === 'completing') {
    return ({ payload, complete }) => pool.writeOrder((tx) => complete(tx)).then(() => onJob(payload.n));
  }
  if (waitMs > 0) return ({ payload }) => wait(waitMs).then(() => onJob(payload.n));
  if (holdMs > 0) {
    return ({ payload, signal }) => {
      onJob(payload.n);
      // A stop ends it, and gives the job back.
      return sleep(holdMs, undefined, { signal });
    };
  }
  return ({ payload }) => onJob(payload.n);
}

/** The app's database, which the worker shares. */
interface Pool {
  readonly db: Database;
  /** Inserts an order in a transaction, with what else is to be done in it. */
  writeOrder(end?: (tx: Transaction) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

function connect(
  driver: DrizzleQueueOptions['driver'],
  url: string,
  max: number | undefined,
  prepare: boolean,
): Pool {
  const pool = max === undefined ? {} : { max };
  if (driver === 'postgres.js') {
    const client = postgres(url, { onnotice: () => {}, prepare, ...pool });
    const db = drizzlePostgresJs({ client });
    return {
      db,
      writeOrder: (end) =>
        db.transaction(async (tx) => {
          await insertOrder(tx);
          await end?.(tx);
        }),
      close: () => client.end(),
    };
  }
  const client = new pg.Pool({ connectionString: url, ...pool });
  const db = drizzleNodePostgres({ client });
  return {
    db,
    writeOrder: (end) =>
      db.transaction(async (tx) => {
        await insertOrder(tx);
        await end?.(tx);
      }),
    close: () => client.end(),
  };
}
