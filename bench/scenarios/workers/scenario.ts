import { hasPgBouncer, type PgBouncer, startPgBouncer } from '../../../test/faults/pgbouncer.ts';
import { nowMs } from '../../child/counter.ts';
import { COUNTING, readBackends } from '../../harness/backends.ts';
import { chosen, withSites } from '../../harness/bench.ts';
import { figure } from '../../harness/ratios.ts';
import { print, type Report } from '../../harness/report.ts';
import { SERVER_TEXT } from '../../harness/server.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { Working } from '../../harness/working.ts';
import type { Scenario } from '../../scenario.ts';
import { type EnqueueMode, openEnqueuer } from '../../systems/drizzle-queue/enqueue.ts';
import type { DrizzleQueueOptions } from '../../systems/drizzle-queue/work.ts';
import { BOUNCER_POOL, CREWS, type Crew, SHARED_POOL, urlOf } from './crew.ts';

/** Room for a thousand workers with two connections each. */
const SETTINGS = { ...COUNTING, max_connections: 2_300 };
const MAX_PROCESSES = 10;
/** Jobs per second, of one producer. */
const RATE = 20;

interface Cost {
  readonly statementsPerSecond: number;
  /** Processor time of the connections' processes on the server, in thousandths of one core. */
  readonly serverMilliCores: number;
  /** Of the worker's processes. */
  readonly workerMilliCores: number;
}

interface Row {
  readonly crew: string;
  readonly workers: number;
  readonly processes: number;
  readonly connections: number;
  readonly startedMs: number;
  readonly idle: Cost;
  /** Execution and planning of what tells who lives, in milliseconds per second. */
  readonly livenessMsPerSecond: number;
  readonly busy: Cost;
  /** From before the enqueue to the handler, in milliseconds. */
  readonly latencyMs: { readonly median: number; readonly p95: number };
  /** How long an enqueue took, its commit included, in milliseconds. */
  readonly enqueueMs: { readonly median: number; readonly p95: number };
}

/** What many workers cost one server: with nothing to do, and with a few jobs. */
export const workers: Scenario = async (options) => {
  const { quick } = options;
  const settleMs = quick ? 2_000 : 16_000;
  const measuredMs = quick ? 2_000 : 20_000;
  const jobs = options.jobs ?? (quick ? 10 : 200);
  const rows = await withSites(async (sites) => {
    const pgBouncer = hasPgBouncer()
      ? await startPgBouncer(sites.server.url, BOUNCER_POOL, { maxClients: 3_000 })
      : undefined;
    try {
      const rows: Row[] = [];
      for (const crew of chosen(CREWS, options)) {
        for (const count of quick ? [4] : crew.workers) {
          console.error(`workers: ${count}, ${crew.name} …`);
          const row = await measure(sites, crew, count, pgBouncer, { settleMs, measuredMs, jobs });
          if (row === undefined) console.error('  not measured: PgBouncer is not installed');
          else rows.push(row);
        }
      }
      return rows;
    } finally {
      await pgBouncer?.stop();
    }
  }, SETTINGS);
  const report = reportOf(rows, measuredMs, jobs);
  print(report);
  return { scenario: 'workers', measuredMs, jobs, rows, report };
};

interface Times {
  readonly settleMs: number;
  readonly measuredMs: number;
  readonly jobs: number;
}

async function measure(
  sites: Sites,
  crew: Crew,
  count: number,
  pgBouncer: PgBouncer | undefined,
  { settleMs, measuredMs, jobs }: Times,
): Promise<Row | undefined> {
  const processes = Math.min(MAX_PROCESSES, Math.ceil(count / 10));
  const site = await Site.open(sites, crew.system(count / processes));
  try {
    const url = urlOf(crew, site.url, pgBouncer);
    if (url === undefined) return undefined;
    const startMs = performance.now();
    const working = await Working.start(
      { system: site.system, url },
      { processes, sampleEvery: 1, noteStarts: true },
    );
    try {
      const startedMs = performance.now() - startMs;
      await pause(settleMs);
      const before = await livenessMs(site);
      const idle = await costOf(site, working, () => pause(measuredMs));
      const liveness = (await livenessMs(site)) - before;
      const { connections } = await readBackends(site.sql);
      const enqueued: number[] = [];
      const tookMs: number[] = [];
      const { limits } = site.system.options as DrizzleQueueOptions;
      const enqueuer = await openEnqueuer({
        enqueuer: 'drizzle-queue',
        url: site.url,
        connections: 1,
        options: { limits } satisfies EnqueueMode,
      });
      const busy = await costOf(site, working, async () => {
        for (let n = 0; n < jobs; n++) {
          const atMs = nowMs();
          enqueued.push(atMs);
          await enqueuer.enqueue(n);
          tookMs.push(nowMs() - atMs);
          await pause(Math.max(0, 1_000 / RATE - (nowMs() - atMs)));
        }
        if (!(await working.untilHandled(jobs, 60_000))) throw new Error('Jobs were left undone');
      });
      await enqueuer.close();
      const handled = await working.handled();
      working.checkOnce(handled, jobs);
      const latencies = enqueued.map(
        (atMs, n) => Math.max(...handled.map(({ starts }) => starts[n] ?? 0)) - atMs,
      );
      return {
        crew: crew.name,
        workers: count,
        processes,
        connections,
        startedMs,
        idle,
        livenessMsPerSecond: (liveness / measuredMs) * 1_000,
        busy,
        latencyMs: quantiles(latencies),
        enqueueMs: quantiles(tookMs),
      };
    } finally {
      await working.end();
    }
  } finally {
    await site.close();
  }
}

/** What passes while something happens. */
async function costOf(site: Site, working: Working, happen: () => Promise<void>): Promise<Cost> {
  const read = async () => ({ server: await readBackends(site.sql), handled: await working.handled() });
  const before = await read();
  const startMs = performance.now();
  await happen();
  const seconds = (performance.now() - startMs) / 1_000;
  const after = await read();
  const cpuMs = ({ handled }: typeof before) => handled.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  return {
    statementsPerSecond: (after.server.statements - before.server.statements) / seconds,
    serverMilliCores: (after.server.cpuMs - before.server.cpuMs) / seconds,
    workerMilliCores: (cpuMs(after) - cpuMs(before)) / seconds,
  };
}

/** What the statements about the workers themselves have taken, in milliseconds. */
async function livenessMs({ sql }: Site): Promise<number> {
  await sql`create extension if not exists pg_stat_statements /* bench */`;
  const [row] = await sql<{ ms: number }[]>`
    select coalesce(sum(total_exec_time + total_plan_time), 0)::float8 as ms from pg_stat_statements /* bench */
    where dbid = (select oid from pg_database where datname = current_database())
      and query like '%seen_at%' and query not like '%/* bench */%' and toplevel`;
  return row?.ms ?? Number.NaN;
}

function quantiles(values: readonly number[]): { median: number; p95: number } {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
  return { median: at(0.5), p95: at(0.95) };
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

function reportOf(rows: readonly Row[], measuredMs: number, jobs: number): Report {
  return {
    tables: [
      {
        title: `workers: with nothing to do, over ${measuredMs / 1_000} s`,
        header: [
          '',
          'workers',
          'connections',
          'started s',
          'statements/s',
          'server CPU ‰',
          'who lives ms/s',
          'worker CPU ‰',
        ],
        rows: rows.map((row) => [
          row.crew,
          figure(row.workers),
          figure(row.connections),
          figure(row.startedMs / 1_000, 1),
          figure(row.idle.statementsPerSecond),
          figure(row.idle.serverMilliCores),
          figure(row.livenessMsPerSecond, 1),
          figure(row.idle.workerMilliCores),
        ]),
      },
      {
        title: `workers: with ${RATE} no-op jobs a second, ${jobs} in all`,
        header: [
          '',
          'workers',
          'statements/s',
          'server CPU ‰',
          'worker CPU ‰',
          'starts after ms',
          'p95',
          'enqueue ms',
          'p95',
        ],
        rows: rows.map((row) => [
          row.crew,
          figure(row.workers),
          figure(row.busy.statementsPerSecond),
          figure(row.busy.serverMilliCores),
          figure(row.busy.workerMilliCores),
          figure(row.latencyMs.median, 1),
          figure(row.latencyMs.p95, 1),
          figure(row.enqueueMs.median, 1),
          figure(row.enqueueMs.p95, 1),
        ]),
      },
    ],
    charts: [],
    remarks: [
      `All serve one queue, on postgres.js, in ${MAX_PROCESSES} processes at most. Sharing pools: those of a process share one of ${SHARED_POOL} connections and one that listens. PgBouncer is in transaction mode and has ${BOUNCER_POOL} connections to the server.`,
      'CPU in thousandths of one core: of the connections on the server, and of the worker processes. Who lives: what the statements about the workers themselves take, planning included.',
      `${SERVER_TEXT}; max_connections = ${SETTINGS.max_connections}`,
    ],
  };
}
