import { type Drained, drainFresh } from '../harness/drain-jobs.ts';
import { figure, percent, times } from '../harness/ratios.ts';
import { SERVER_TEXT, startServer } from '../harness/server.ts';
import { Sites } from '../harness/site.ts';
import { LARGE, SMALL, type System } from '../harness/system.ts';
import { median } from '../median.ts';
import type { Options } from '../options.ts';
import { printTable } from '../print-table.ts';
import type { Scenario, ScenarioResult } from '../scenario.ts';
import { bullmqOnPostgres, bullmqOnRedis } from '../systems/bullmq/system.ts';
import { drizzleQueue } from '../systems/drizzle-queue/system.ts';
import { graphileBest, graphileDefaults } from '../systems/graphile-worker/system.ts';
import { hasPgbench } from '../systems/limit/pgbench.ts';
import { limit, limitByPgbench } from '../systems/limit/system.ts';
import { pgBossBest, pgBossDefaults } from '../systems/pg-boss/system.ts';

const withoutResults = drizzleQueue('no results', { keepResult: false });
const withResults = drizzleQueue('results kept');
const onNodePostgres = drizzleQueue('no results, node-postgres', { keepResult: false, driver: 'node-postgres' });

const SYSTEMS: readonly System[] = [
  withoutResults,
  withResults,
  onNodePostgres,
  limit,
  ...(hasPgbench() ? [limitByPgbench] : []),
  graphileBest,
  graphileDefaults,
  pgBossBest,
  pgBossDefaults,
  bullmqOnPostgres,
];

/** The medians of one system with one size of payload. */
interface Row extends Drained {
  readonly system: string;
  readonly payloadBytes: number;
}

export interface DrainResult extends ScenarioResult {
  readonly jobs: number;
  readonly runs: number;
  readonly rows: readonly Row[];
}

/** No-op jobs, one worker process: how many per second. */
export const drain: Scenario = async (options): Promise<DrainResult> => {
  const { quick, only } = options;
  const jobs = options.jobs ?? (quick ? 3_000 : 100_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const redis = await bullmqOnRedis();
  const all = redis === undefined ? SYSTEMS : [...SYSTEMS, redis];
  const systems = all.filter(({ name }) => only === undefined || only.some((text) => name.includes(text)));
  const server = await startServer();
  try {
    const sites = new Sites(server);
    const taken = new Map<string, { system: System; payloadBytes: number; drains: Drained[] }>();
    for (let run = 1; run <= runs; run++) {
      for (const payloadBytes of quick ? [SMALL] : [SMALL, LARGE]) {
        for (const system of systems) {
          console.error(`drain: run ${run} of ${runs}, ${payloadBytes} B, ${system.name} …`);
          const key = `${system.name} ${payloadBytes}`;
          const known = taken.get(key) ?? { system, payloadBytes, drains: [] };
          const drained = await drainFresh(sites, system, { jobs, payloadBytes, limitMs: 20_000 });
          known.drains.push(drained);
          taken.set(key, known);
        }
      }
    }
    const rows = [...taken.values()].map(({ system, payloadBytes, drains }): Row => ({
      system: system.name,
      payloadBytes,
      ...medians(drains),
    }));
    print(rows, jobs, runs);
    return { scenario: 'drain', jobs, runs, rows, missed: missedFigures(options, rows) };
  } finally {
    await server.stop();
  }
};

function medians(drains: readonly Drained[]): Drained {
  const of = (value: (drained: Drained) => number) => median(drains.map(value));
  return {
    jobs: of(({ jobs }) => jobs),
    jobsPerSecond: of(({ jobsPerSecond }) => jobsPerSecond),
    walBytesPerJob: of(({ walBytesPerJob }) => walBytesPerJob),
    hotShare: of(({ hotShare }) => hotShare),
    deadlocks: Math.max(...drains.map(({ deadlocks }) => deadlocks)),
    cpuUsPerJob: of(({ cpuUsPerJob }) => cpuUsPerJob),
  };
}

function print(rows: readonly Row[], jobs: number, runs: number): void {
  for (const payloadBytes of new Set(rows.map((row) => row.payloadBytes))) {
    const own = rows.filter((row) => row.payloadBytes === payloadBytes);
    const rate = (name: string) => own.find(({ system }) => system === name)?.jobsPerSecond ?? Number.NaN;
    printTable(
      `drain: ${figure(jobs)} no-op jobs (fewer where the table says so), payload ${payloadBytes} B, one worker process; medians of ${runs}`,
      ['', 'jobs/s', '÷ graphile best', '÷ limit', 'jobs', 'WAL B/job', 'HOT', 'worker CPU µs/job', 'deadlocks'],
      own.map((row) => [
        row.system,
        figure(row.jobsPerSecond),
        times(row.jobsPerSecond, rate(graphileBest.name)),
        times(row.jobsPerSecond, rate(limit.name)),
        figure(row.jobs),
        figure(row.walBytesPerJob),
        percent(row.hotShare),
        figure(row.cpuUsPerJob, 1),
        figure(row.deadlocks),
      ]),
    );
  }
  console.log(`\n${SERVER_TEXT}\n`);
}

function missedFigures({ quick }: Options, rows: readonly Row[]): string[] {
  if (quick) return [];
  const rate = (system: System) =>
    rows.find((row) => row.system === system.name && row.payloadBytes === SMALL)?.jobsPerSecond ?? Number.NaN;
  const figures: [string, number, number][] = [
    ['without results, at least 2.5× graphile-worker', rate(withoutResults) / rate(graphileBest), 2.5],
    ['with results, at least 2× graphile-worker', rate(withResults) / rate(graphileBest), 2],
    ['without results, at least 0.7× of the limit', rate(withoutResults) / rate(limit), 0.7],
  ];
  return figures
    .filter(([, reached, wanted]) => !(reached >= wanted))
    .map(([what, reached]) => `drain: ${what}; reached ${reached.toFixed(2)}×`);
}
