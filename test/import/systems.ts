import { createRequire } from 'node:module';
import { from, type ImportSource } from 'drizzle-queue/import';
import type postgres from 'postgres';
import { Program } from './process.ts';

/** A job as the tests give it to a peer. */
export interface GivenJob {
  readonly n: number;
  /** Steps behind the others; below 0: before them. */
  readonly priority: number;
  /** Milliseconds since 1970; `undefined`: now. */
  readonly dueAt?: number | undefined;
}

export interface Filling {
  /** Jobs that the peer's own worker fails, once. */
  readonly failing: readonly GivenJob[];
  readonly jobs: readonly GivenJob[];
  /** Others, one by one, with the peer's own options. */
  /** Whether there is a flow of 6 with the child 7, too, and a scheduler of 8; of BullMQ. */
  readonly flow?: boolean;
  readonly others?: readonly { readonly queue: string; readonly data: unknown; readonly send?: object }[];
}

/** Where a peer keeps its jobs in one test. */
export interface Place {
  readonly url: string;
  readonly redisUrl?: string | undefined;
  /** BullMQ's queue: a Redis server is shared. */
  readonly queue: string;
}

/** A source that was opened, and is to be closed. */
export interface OpenSource {
  readonly source: ImportSource;
  close(): Promise<void>;
}

export interface System {
  readonly title: string;
  readonly program: string;
  /** Which priorities it has, the best first. */
  readonly priorities: readonly number[];
  open(place: Place): OpenSource;
  /** The numbers of the jobs that are still there, in whatever state but done. */
  remaining(place: Place, client: postgres.Sql): Promise<number[]>;
}

export async function fill(system: System, place: Place, filling: Filling): Promise<void> {
  await Program.peer(system.program, { command: 'fill', ...place, ...filling }).ended();
}

export function work(system: System, place: Place): Program {
  return Program.peer(system.program, { command: 'work', ...place });
}

const nothing = async (): Promise<void> => undefined;

export const pgBoss: System = {
  title: 'pg-boss',
  program: 'pg-boss',
  priorities: [-2, -1, 0, 1, 2],
  open: () => ({ source: from.pgBoss(), close: nothing }),
  remaining: async (_, client) =>
    numbers(
      await client`select (data->>'n')::int as n from pgboss.job where state < 'completed' and name = 'mail'`,
    ),
};

export const graphileWorker: System = {
  title: 'graphile-worker',
  program: 'graphile-worker',
  priorities: [-2, -1, 0, 1, 2],
  open: () => ({ source: from.graphileWorker(), close: nothing }),
  remaining: async (_, client) =>
    numbers(await client`select (payload->>'n')::int as n from graphile_worker._private_jobs`),
};

export const bullmqOnPostgres: System = {
  title: 'BullMQ on Postgres',
  program: 'bullmq',
  priorities: [0, 1, 2, 3, 4],
  open: ({ queue }) => ({ source: from.bullmqPostgres({ queue }), close: nothing }),
  remaining: async ({ queue }, client) =>
    numbers(
      await client`
      select data->'n' as n from bullmq.job
      where queue = ${queue} and state not in ('completed', 'failed')`,
    ),
};

const require = createRequire(new URL('../../bench/package.json', import.meta.url));

/** What the tests use of BullMQ's queue. */
interface BullmqQueue {
  readonly name: string;
  toKey(type: string): string;
  waitUntilReady(): Promise<unknown>;
  getJobs(types: string[]): Promise<{ data: { n: number } }[]>;
  add(name: string, data: object, options?: object): Promise<unknown>;
  addBulk(jobs: readonly { readonly name: string; readonly data: object }[]): Promise<unknown>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

export function openBullmq({ queue, redisUrl }: Place): BullmqQueue {
  const { Queue } = require('bullmq');
  return new Queue(queue, { connection: { url: redisUrl, maxRetriesPerRequest: null } });
}

export const bullmqOnRedis: System = {
  title: 'BullMQ on Redis',
  program: 'bullmq',
  priorities: [0, 1, 2, 3, 4],
  open(place) {
    const queue = openBullmq(place);
    return { source: from.bullmq({ queue }), close: () => queue.close() };
  },
  async remaining(place) {
    const queue = openBullmq(place);
    const jobs = await queue.getJobs([
      'waiting',
      'prioritized',
      'delayed',
      'active',
      'paused',
      'waiting-children',
    ]);
    await queue.close();
    return jobs.map(({ data }) => data.n);
  },
};

function numbers(rows: readonly postgres.Row[]): number[] {
  return rows.map(({ n }) => Number(n));
}

export const SYSTEMS: Readonly<Record<string, System>> = {
  pgBoss,
  graphileWorker,
  bullmqOnPostgres,
  bullmqOnRedis,
};

export async function remainingSorted(system: System, place: Place, client: postgres.Sql): Promise<number[]> {
  return (await system.remaining(place, client)).sort((a, b) => a - b);
}
