import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { type Drained, drainFresh, medianOfDrains } from '../harness/drain-jobs.ts';
import { figure, percent, times } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { LARGE, SMALL, type System } from '../harness/system.ts';
import type { Scenario, ScenarioResult } from '../scenario.ts';
import { bullmqOnPostgres, bullmqOnRedis } from '../systems/bullmq/system.ts';
import {
  onNodePostgres,
  withOutcomes,
  withoutResults,
  withResults,
} from '../systems/drizzle-queue/system.ts';
import { graphileBest, graphileDefaults } from '../systems/graphile-worker/system.ts';
import { hasPgbench } from '../systems/limit/pgbench.ts';
import { limit, limitByPgbench } from '../systems/limit/system.ts';
import { pgBossBest, pgBossDefaults } from '../systems/pg-boss/system.ts';

const SYSTEMS: readonly System[] = [
  withoutResults,
  withResults,
  withOutcomes,
  onNodePostgres,
  limit,
  ...(hasPgbench() ? [limitByPgbench] : []),
  graphileBest,
  graphileDefaults,
  pgBossBest,
  pgBossDefaults,
  bullmqOnPostgres,
];

/** A system that needs longer is stopped; what it has done until then is its figure. */
const LIMIT_MS = 15_000;
/** With the large payload only these: what it costs is what they show. */
const WITH_LARGE = [withoutResults, withResults, withOutcomes, limit, graphileBest, pgBossBest];

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
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 2_000 : 100_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const redis = await bullmqOnRedis();
  const systems = chosen(redis === undefined ? SYSTEMS : [...SYSTEMS, redis], options);
  const large = quick ? [] : systems.filter((system) => WITH_LARGE.includes(system));
  const cells = [
    ...systems.map((system) => ({ system, payloadBytes: SMALL })),
    ...large.map((system) => ({ system, payloadBytes: LARGE })),
  ];
  const taken = await withSites((sites) =>
    inTurns(
      'drain',
      runs,
      cells,
      ({ system, payloadBytes }) => `${system.name}, ${payloadBytes} B`,
      ({ system, payloadBytes }) =>
        drainFresh(sites, system, { jobs, payloadBytes, limitMs: quick ? 3_000 : LIMIT_MS }),
    ),
  );
  const rows = taken.map(
    ({ of, values }): Row => ({
      system: of.system.name,
      payloadBytes: of.payloadBytes,
      ...medianOfDrains(values),
    }),
  );
  const report = reportOf(rows, systems, jobs, runs);
  print(report);
  const reached = (system: System, payloadBytes: number) =>
    rows.find((row) => row.system === system.name && row.payloadBytes === payloadBytes);
  const rate = (system: System, payloadBytes = SMALL) =>
    reached(system, payloadBytes)?.jobsPerSecond ?? Number.NaN;
  const cpu = (system: System) => reached(system, SMALL)?.cpuUsPerJob ?? Number.NaN;
  const besideGraphile = (system: System, payloadBytes: number, atLeast: number) => ({
    what: `${system.name}, ${figure(payloadBytes)} B, ÷ ${graphileBest.name}`,
    reached: rate(system, payloadBytes) / rate(graphileBest, payloadBytes),
    atLeast,
  });
  return {
    scenario: 'drain',
    jobs,
    runs,
    rows,
    missed: missed('drain', [
      besideGraphile(withoutResults, SMALL, 2),
      besideGraphile(withResults, SMALL, 1.7),
      besideGraphile(withResults, LARGE, 1.6),
      { what: 'no results ÷ limit', reached: rate(withoutResults) / rate(limit), atLeast: 0.95 },
      {
        what: "worker CPU, no results, ÷ the limit's",
        reached: cpu(withoutResults) / cpu(limit),
        atMost: 1.4,
      },
    ]),
    report,
  };
};

function reportOf(rows: readonly Row[], systems: readonly System[], jobs: number, runs: number): Report {
  const tables = [...new Set(rows.map((row) => row.payloadBytes))].map((payloadBytes) => {
    const own = rows.filter((row) => row.payloadBytes === payloadBytes);
    const rate = ({ name }: System) => own.find(({ system }) => system === name)?.jobsPerSecond ?? Number.NaN;
    return {
      title: `drain: ${figure(jobs)} no-op jobs, payload ${figure(payloadBytes)} B, one worker process; medians of ${runs}`,
      header: [
        '',
        'jobs/s',
        '÷ graphile best',
        '÷ limit',
        'jobs',
        'WAL B/job',
        'HOT',
        'worker CPU µs/job',
        'deadlocks',
      ],
      rows: own.map((row) => [
        row.system,
        figure(row.jobsPerSecond),
        times(row.jobsPerSecond, rate(graphileBest)),
        times(row.jobsPerSecond, rate(limit)),
        figure(row.jobs),
        figure(row.walBytesPerJob),
        percent(row.hotShare),
        figure(row.cpuUsPerJob, 1),
        figure(row.deadlocks),
      ]),
    };
  });
  return {
    tables,
    charts: [
      {
        name: 'drain',
        title: 'No-op jobs per second, one worker process, payload 40 B',
        kind: 'bars',
        x: 'jobs/s',
        y: '',
        points: rows
          .filter((row) => row.payloadBytes === SMALL)
          .map(({ system, jobsPerSecond }) => ({ series: system, x: system, y: jobsPerSecond })),
      },
    ],
    remarks: [
      ...setupsOf(systems),
      `A tenth more jobs are done first, to warm up. Where fewer jobs stand in the table the system was given fewer, or was stopped after ${LIMIT_MS / 1_000} s.`,
      SERVER_TEXT,
    ],
  };
}

/** One sentence per setup, with all that share it. */
function setupsOf(systems: readonly System[]): string[] {
  return [...new Set(systems.map(({ setup }) => setup))].map((setup) => {
    const sharing = systems.filter((system) => system.setup === setup);
    return `${sharing.map(({ name }) => name).join('; ')}: ${setup}.`;
  });
}
