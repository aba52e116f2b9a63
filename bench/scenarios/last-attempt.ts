import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { type Drained, drainFresh, medianOfDrains } from '../harness/drain-jobs.ts';
import { figure, percent, times } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { SMALL, type System } from '../harness/system.ts';
import type { Scenario, ScenarioResult } from '../scenario.ts';
import { withoutResults } from '../systems/drizzle-queue/system.ts';

/** Jobs as they are put in, changed before a worker sees them. */
function changed(name: string, change: string): System {
  return {
    ...withoutResults,
    name: `drizzle-queue, ${name}`,
    async fill(site, fill) {
      await withoutResults.fill(site, fill);
      // Rewritten, so that the table is as dense as the others'.
      await site.sql.unsafe(`update queue_jobs set ${change}`);
      await site.sql.unsafe('vacuum full queue_jobs');
    },
  };
}

const attemptsLeft = changed('20 attempts', 'max_attempts = 20');
const SYSTEMS: readonly System[] = [
  attemptsLeft,
  changed('one attempt', 'max_attempts = 1'),
  changed(
    'last of 20',
    `attempt = 19, errors = '[{"attempt": 19, "name": "Error", "message": "no", "at": "2026-01-01T00:00:00.000Z"}]'`,
  ),
  changed('after a crash', 'attempt = 1, fence = 1'),
];

const LIMIT_MS = 15_000;
const AT_LEAST = 0.8;

/** No-op jobs that a crash must not spend the attempt of before they begin, beside jobs with attempts left. */
export const lastAttempt: Scenario = async (options): Promise<ScenarioResult> => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 2_000 : 100_000);
  const runs = options.runs ?? (quick ? 1 : 5);
  const taken = await withSites((sites) =>
    inTurns(
      'last-attempt',
      runs,
      chosen(SYSTEMS, options),
      ({ name }) => name,
      (system) => drainFresh(sites, system, { jobs, payloadBytes: SMALL, limitMs: quick ? 3_000 : LIMIT_MS }),
    ),
  );
  const rows = taken.map(({ of, values }) => ({ system: of.name, ...medianOfDrains(values) }));
  const normal = rows.find(({ system }) => system === attemptsLeft.name)?.jobsPerSecond ?? Number.NaN;
  const report = reportOf(rows, normal, jobs, runs);
  print(report);
  return {
    scenario: 'last-attempt',
    missed: missed(
      'last-attempt',
      rows.map(({ system, jobsPerSecond }) => ({
        what: `${system} ÷ 20 attempts`,
        reached: jobsPerSecond / normal,
        atLeast: AT_LEAST,
      })),
    ),
    report,
  };
};

function reportOf(
  rows: readonly (Drained & { readonly system: string })[],
  normal: number,
  jobs: number,
  runs: number,
): Report {
  return {
    tables: [
      {
        title: `last-attempt: ${figure(jobs)} no-op jobs, one worker process; medians of ${runs}`,
        header: ['', 'jobs/s', '÷ 20 attempts', 'jobs', 'WAL B/job', 'HOT', 'worker CPU µs/job'],
        rows: rows.map((row) => [
          row.system,
          figure(row.jobsPerSecond),
          times(row.jobsPerSecond, normal),
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
      SERVER_TEXT,
    ],
  };
}
