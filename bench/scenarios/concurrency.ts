import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { type Drained, drainFresh, medianOfDrains } from '../harness/drain-jobs.ts';
import { figure, percent, times } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { SMALL, type System } from '../harness/system.ts';
import type { Scenario } from '../scenario.ts';
import { drizzleQueue } from '../systems/drizzle-queue/system.ts';
import { graphileBest } from '../systems/graphile-worker/system.ts';

const MAX_PROCESSES = 4;

/** Claim loops on one queue, spread over processes. */
interface Crew {
  readonly name: string;
  readonly system: System;
  readonly loops: number;
  readonly processes: number;
}

interface Row extends Drained {
  readonly system: string;
  readonly loops: number;
  readonly processes: number;
}

const OURS = 'drizzle-queue';

/** One queue, more and more claim loops: what they reach together. */
export const concurrency: Scenario = async (options) => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 3_000 : 100_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const crews = chosen(
    [...(quick ? [1, 4] : [1, 2, 4, 8, 16]).map(crewOf), ...(quick ? [2] : [1, 4]).map(peersOf)],
    options,
  );
  const taken = await withSites((sites) =>
    inTurns(
      'concurrency',
      runs,
      crews,
      ({ name }) => name,
      ({ system, processes }) =>
        drainFresh(sites, system, { jobs, processes, payloadBytes: SMALL, limitMs: 30_000 }),
    ),
  );
  const rows = taken.map(
    ({ of, values }): Row => ({
      system: of.system.program === 'drizzle-queue' ? OURS : of.system.name,
      loops: of.loops,
      processes: of.processes,
      ...medianOfDrains(values),
    }),
  );
  const report = reportOf(rows, jobs, runs);
  print(report);
  const own = rows.filter(({ system }) => system === OURS);
  return {
    scenario: 'concurrency',
    jobs,
    runs,
    rows,
    missed: missed('concurrency', [
      // Two medians of the same thing differ by some percent on a shared machine.
      ...own.slice(1).map(({ loops, jobsPerSecond }, index) => ({
        what: `${loops} loops ÷ ${own[index]?.loops} (1, but for the noise)`,
        reached: jobsPerSecond / (own[index]?.jobsPerSecond ?? Number.NaN),
        atLeast: 0.95,
      })),
      {
        what: 'most loops ÷ one',
        reached: (own.at(-1)?.jobsPerSecond ?? Number.NaN) / (own[0]?.jobsPerSecond ?? Number.NaN),
        atLeast: 0.9,
      },
      { what: 'deadlocks', reached: Math.max(...own.map(({ deadlocks }) => deadlocks)), atMost: 0 },
    ]),
    report,
  };
};

function crewOf(loops: number): Crew {
  const processes = Math.min(loops, MAX_PROCESSES);
  return {
    name: `${OURS}, ${loops} loops`,
    system: drizzleQueue('', { keepResult: false, workers: loops / processes }),
    loops,
    processes,
  };
}

function peersOf(processes: number): Crew {
  return {
    name: `${graphileBest.name}, ${processes} processes`,
    system: graphileBest,
    loops: processes,
    processes,
  };
}

function reportOf(rows: readonly Row[], jobs: number, runs: number): Report {
  return {
    tables: [
      {
        title: `concurrency: ${figure(jobs)} no-op jobs of one queue by more and more claim loops; medians of ${runs}`,
        header: ['', 'loops', 'processes', 'jobs/s', '÷ one loop', 'WAL B/job', 'HOT', 'deadlocks'],
        rows: rows.map((row) => [
          row.system,
          figure(row.loops),
          figure(row.processes),
          figure(row.jobsPerSecond),
          times(
            row.jobsPerSecond,
            rows.find(({ system }) => system === row.system)?.jobsPerSecond ?? Number.NaN,
          ),
          figure(row.walBytesPerJob),
          percent(row.hotShare),
          figure(row.deadlocks),
        ]),
      },
    ],
    charts: [
      {
        name: 'concurrency',
        title: 'Jobs per second by claim loops on one queue',
        kind: 'lines',
        x: 'claim loops',
        y: 'jobs/s',
        points: rows.map(({ system, loops, jobsPerSecond }) => ({
          series: system,
          x: loops,
          y: jobsPerSecond,
        })),
      },
    ],
    remarks: [
      `A loop is a worker with default options; they are spread over up to ${MAX_PROCESSES} processes. Each job was done exactly once.`,
      SERVER_TEXT,
    ],
  };
}
