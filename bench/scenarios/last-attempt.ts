import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { type Drained, drainFresh, medianOfDrains } from '../harness/drain-jobs.ts';
import { figure, percent, times } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { type Fill, SMALL, type System, type SystemSite } from '../harness/system.ts';
import type { Scenario, ScenarioResult } from '../scenario.ts';
import { drizzleQueue, withoutResults } from '../systems/drizzle-queue/system.ts';
import { withOrders } from '../systems/orders.ts';

/** What the handler does, and which attempts its jobs have left. */
interface Cell {
  readonly handler: string;
  readonly attempts: string;
  readonly share: number;
  readonly system: System;
}

const AT_ONCE = 24;
const own = { keepResult: false } as const;
const HANDLERS: readonly { readonly handler: string; readonly share: number; readonly system: System }[] = [
  { handler: 'does nothing', share: 1, system: withoutResults },
  {
    handler: 'waits 5 ms',
    share: 1,
    system: drizzleQueue('waiting', { ...own, waitMs: 5, worker: { concurrency: 100 } }),
  },
  {
    handler: 'writes a row',
    share: 0.5,
    system: withOrders(
      drizzleQueue('writing', {
        ...own,
        orders: 'plain',
        poolSize: AT_ONCE + 10,
        worker: { concurrency: AT_ONCE },
      }),
    ),
  },
];

const ATTEMPTS_LEFT = '20 attempts';
const ATTEMPTS: Readonly<Record<string, string>> = {
  [ATTEMPTS_LEFT]: 'max_attempts = 20',
  'one attempt': 'max_attempts = 1',
  'last of 20': `attempt = 19, errors = '[{"attempt": 19, "name": "Error", "message": "no", "at": "2026-01-01T00:00:00.000Z"}]'`,
  'after a crash': 'attempt = 1, fence = 1',
};

const CELLS: readonly Cell[] = HANDLERS.flatMap(({ handler, share, system }) =>
  Object.entries(ATTEMPTS).map(([attempts, change]) => ({
    handler,
    attempts,
    share,
    system: {
      ...system,
      name: `drizzle-queue, ${attempts}, ${handler}`,
      async fill(site: SystemSite, fill: Fill) {
        await system.fill(site, fill);
        // Rewritten, so that the table is as dense as the others'.
        await site.sql.unsafe(`update queue_jobs set ${change}`);
        await site.sql.unsafe('vacuum full queue_jobs');
      },
    },
  })),
);

const LIMIT_MS = 15_000;
const AT_LEAST = 0.8;

/** Jobs that a crash must not spend the attempt of before they begin, beside jobs with attempts left. */
export const lastAttempt: Scenario = async (options): Promise<ScenarioResult> => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 2_000 : 100_000);
  const runs = options.runs ?? (quick ? 1 : 5);
  const taken = await withSites((sites) =>
    inTurns(
      'last-attempt',
      runs,
      chosen(
        CELLS.map((cell) => ({ ...cell, name: cell.system.name })),
        options,
      ),
      ({ name }) => name,
      ({ system, share }) =>
        drainFresh(sites, system, {
          jobs: Math.round(jobs * share),
          payloadBytes: SMALL,
          limitMs: quick ? 3_000 : LIMIT_MS,
        }),
    ),
  );
  const drained = taken.map(({ of, values }) => ({ ...of, ...medianOfDrains(values) }));
  const rows = drained.map((row) => ({
    ...row,
    normal:
      drained.find(({ handler, attempts }) => handler === row.handler && attempts === ATTEMPTS_LEFT)
        ?.jobsPerSecond ?? Number.NaN,
  }));
  const report = reportOf(rows, jobs, runs);
  print(report);
  return {
    scenario: 'last-attempt',
    missed: missed(
      'last-attempt',
      rows.map(({ handler, attempts, jobsPerSecond, normal }) => ({
        what: `${attempts} ÷ 20 attempts, a handler that ${handler}`,
        reached: jobsPerSecond / normal,
        atLeast: AT_LEAST,
      })),
    ),
    report,
  };
};

interface Row extends Drained {
  readonly handler: string;
  readonly attempts: string;
  /** The rate of jobs with attempts left. */
  readonly normal: number;
}

function reportOf(rows: readonly Row[], jobs: number, runs: number): Report {
  return {
    tables: [
      {
        title: `last-attempt: ${figure(jobs)} jobs, half as many where they write, one worker process; medians of ${runs}`,
        header: [
          '',
          'a handler that',
          'jobs/s',
          '÷ 20 attempts',
          'jobs',
          'WAL B/job',
          'HOT',
          'worker CPU µs/job',
        ],
        rows: rows.map((row) => [
          row.attempts,
          row.handler,
          figure(row.jobsPerSecond),
          times(row.jobsPerSecond, row.normal),
          figure(row.jobs),
          figure(row.walBytesPerJob),
          percent(row.hotShare),
          figure(row.cpuUsPerJob, 1),
        ]),
      },
    ],
    charts: [],
    remarks: [
      'One attempt: maxAttempts 1. Last of 20: nineteen attempts have failed. After a crash: one of twenty was claimed by a worker that died.',
      `100 handlers wait at once, ${AT_ONCE} write a row each in a transaction of their own.`,
      SERVER_TEXT,
    ],
  };
}
