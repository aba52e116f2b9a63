import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { type Drained, drainFresh, medianOfDrains } from '../harness/drain-jobs.ts';
import { figure, percent, times } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { SMALL, type System } from '../harness/system.ts';
import type { Scenario } from '../scenario.ts';
import { bullmqHandling } from '../systems/bullmq/system.ts';
import { drizzleQueue } from '../systems/drizzle-queue/system.ts';
import { graphileHandling } from '../systems/graphile-worker/system.ts';
import { timers } from '../systems/limit/system.ts';
import { pgBossHandling } from '../systems/pg-boss/system.ts';

/** Handlers that wait, so many of them at once. */
interface Load {
  readonly concurrency: number;
  readonly waitMs: number;
  /** How the peers reach this concurrency best, by trial. */
  readonly localQueueSize: number;
  readonly pgBoss: { readonly batchSize: number; readonly localConcurrency: number };
}

const LOADS: readonly Load[] = [
  { concurrency: 100, waitMs: 5, localQueueSize: 200, pgBoss: { batchSize: 100, localConcurrency: 1 } },
  { concurrency: 1_000, waitMs: 50, localQueueSize: 1_000, pgBoss: { batchSize: 125, localConcurrency: 8 } },
];

/** The waits without a queue, our library, and its peers. */
type Kind = 'limit' | 'own' | 'peer';

interface Cell {
  readonly name: string;
  readonly kind: Kind;
  readonly load: Load;
  readonly system: System;
}

function cellsOf(load: Load): Cell[] {
  const { concurrency, waitMs, localQueueSize, pgBoss } = load;
  const handling = { waitMs };
  const worker = { concurrency };
  const setup = `concurrency ${concurrency}, everything else by default; the storage parameters of docs/schema.md`;
  const systems: readonly (readonly [Kind, System])[] = [
    ['limit', timers({ concurrency, waitMs })],
    ['own', { ...drizzleQueue('no results', { keepResult: false, waitMs, worker }), setup }],
    ['own', { ...drizzleQueue('results kept', { waitMs, worker }), setup }],
    ['peer', graphileHandling('best', { concurrency, localQueueSize, handling })],
    ['peer', pgBossHandling('best', pgBoss, handling)],
    ['peer', bullmqHandling('concurrency as given', concurrency, handling)],
  ];
  return systems.map(([kind, system]) => ({ name: system.name, kind, load, system }));
}

const LIMIT_MS = 15_000;

interface Row extends Drained {
  readonly system: string;
  readonly kind: Kind;
  readonly load: Load;
}

/** Handlers that wait, as for an answer from elsewhere: are they kept busy, and what does that cost? */
export const handlers: Scenario = async (options) => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 4_000 : 80_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const cells = chosen(LOADS.flatMap(cellsOf), options);
  const taken = await withSites((sites) =>
    inTurns(
      'handlers',
      runs,
      cells,
      ({ name, load }) => `${name}, ${load.concurrency} × ${load.waitMs} ms`,
      ({ system, load }) =>
        drainFresh(sites, system, {
          jobs,
          payloadBytes: SMALL,
          limitMs: quick ? 2_000 : LIMIT_MS,
          uncounted: load.concurrency,
        }),
    ),
  );
  const rows = taken.map(
    ({ of, values }): Row => ({ system: of.name, kind: of.kind, load: of.load, ...medianOfDrains(values) }),
  );
  const report = reportOf(rows, cells, jobs, runs);
  print(report);
  return {
    scenario: 'handlers',
    jobs,
    runs,
    rows,
    missed: missed(
      'handlers',
      rows.filter(({ kind }) => kind === 'own').flatMap((row) => wanted(row, rows)),
    ),
    report,
  };
};

function limitOf({ load }: Row, rows: readonly Row[]): number {
  return rows.find((row) => row.kind === 'limit' && row.load === load)?.jobsPerSecond ?? Number.NaN;
}

function wanted(row: Row, rows: readonly Row[]) {
  const peers = rows.filter(({ kind, load }) => kind === 'peer' && load === row.load);
  const what = `${row.system}, ${row.load.concurrency} × ${row.load.waitMs} ms`;
  return [
    {
      what: `${what}, ÷ the waits without a queue`,
      reached: row.jobsPerSecond / limitOf(row, rows),
      atLeast: 0.95,
    },
    {
      what: `${what}, worker CPU ÷ the least of the peers`,
      reached: row.cpuUsPerJob / Math.min(...peers.map(({ cpuUsPerJob }) => cpuUsPerJob)),
      atMost: 1,
    },
  ];
}

function reportOf(rows: readonly Row[], cells: readonly Cell[], jobs: number, runs: number): Report {
  const tables = LOADS.map((load) => ({
    title: `handlers: ${figure(jobs)} jobs that wait ${load.waitMs} ms, ${figure(load.concurrency)} at once, one worker process; medians of ${runs}`,
    header: [
      '',
      'jobs/s',
      '÷ at once ÷ wait',
      '÷ without a queue',
      'worker CPU µs/job',
      'jobs',
      'WAL B/job',
      'HOT',
    ],
    rows: rows
      .filter((row) => row.load === load)
      .map((row) => [
        row.system,
        figure(row.jobsPerSecond),
        figure(row.jobsPerSecond / idealOf(load), 2),
        times(row.jobsPerSecond, limitOf(row, rows)),
        figure(row.cpuUsPerJob, 1),
        figure(row.jobs),
        figure(row.walBytesPerJob),
        percent(row.hotShare),
      ]),
  }));
  return {
    tables,
    charts: LOADS.map((load) => ({
      name: `handlers-${load.waitMs}`,
      title: `Jobs per second that wait ${load.waitMs} ms, ${figure(load.concurrency)} at once`,
      kind: 'bars' as const,
      x: 'jobs/s',
      y: '',
      points: rows
        .filter((row) => row.load === load)
        .map(({ system, jobsPerSecond }) => ({ series: system, x: system, y: jobsPerSecond })),
    })),
    remarks: [
      'The waits without a queue: loops that wait in the same way, in a process that does nothing else. A timer of Node.js is late by a fraction of a millisecond, which is why they do not reach what is allowed on paper: so many at once ÷ the wait.',
      ...cells
        .filter(({ kind }) => kind !== 'limit')
        .map(({ name, load, system }) => `${name}, ${figure(load.concurrency)} at once: ${system.setup}.`),
      'The jobs at the end, for which there are more slots than work, are done but not counted.',
      `Where fewer jobs stand in the table the system was given fewer, or was stopped after ${LIMIT_MS / 1_000} s.`,
      SERVER_TEXT,
    ],
  };
}

/** What so many handlers at once would do if nothing else took time. */
function idealOf({ concurrency, waitMs }: Load): number {
  return (concurrency * 1_000) / waitMs;
}
