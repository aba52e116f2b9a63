import { countFootprint } from '../../harness/footprint.ts';
import type { System } from '../../harness/system.ts';
import { drizzleQueue } from '../drizzle-queue/system.ts';
import { runPgbench } from './pgbench.ts';
import type { TimersOptions } from './timers.ts';
import type { LimitOptions } from './work.ts';

const options: LimitOptions = { batch: 1_000 };

/** What the statements alone allow on this machine, without a worker around them. */
export const limit: System = {
  ...drizzleQueue(''),
  name: 'the limit (bare postgres.js)',
  setup: `the library's claim and finish statements, ${options.batch} jobs each, prepared, on 2 connections; no handlers, no results`,
  program: 'limit',
  options,
};

/** The same statements, driven by a program in C. */
export const limitByPgbench: System = {
  ...limit,
  name: 'the limit (pgbench)',
  setup: `the same, ${options.batch} jobs each, by pgbench -M prepared with 2 clients; the payload is not sent`,
  async drain(site, { jobs }) {
    const count = await countFootprint(site.sql, limit.table);
    const jobsPerSecond = await runPgbench(site.url, jobs, options.batch);
    const { walBytes, commits, statements, ...footprint } = await count();
    const [left] = await site.sql<{ jobs: number }[]>`select count(*)::int4 as jobs from queue_jobs`;
    const done = jobs - (left?.jobs ?? 0);
    return {
      ...footprint,
      jobs: done,
      jobsPerSecond,
      walBytesPerJob: walBytes / done,
      commitsPerJob: commits / done,
      statementsPerJob: statements / done,
      cpuUsPerJob: Number.NaN,
    };
  },
};

/** The handlers' waits without any queue: how many a second the timers of Node.js allow. */
export function timers(options: TimersOptions): System {
  return {
    name: 'the waits without a queue',
    setup: `${options.concurrency} loops that wait in the same way, one wait after the other; no queue, no database`,
    program: 'timers',
    options,
    table: 'none',
    create: async () => undefined,
    fill: async () => undefined,
    anyLeft: async () => false,
  };
}
