import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { drainFresh } from '../harness/drain-jobs.ts';
import { type Fed, feed, type Second } from '../harness/feed.ts';
import { figure, percent } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { SMALL } from '../harness/system.ts';
import type { Scenario } from '../scenario.ts';
import { withoutResults } from '../systems/drizzle-queue/system.ts';
import { graphileBest } from '../systems/graphile-worker/system.ts';

/** How much of what `drain` reaches is fed. */
const SHARE = 0.6;

interface Row extends Fed {
  readonly system: string;
}

/** Fed while it drains, for minutes: does anything grow? */
export const mixed: Scenario = async (options) => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 5_000 : 50_000);
  const loads = chosen(
    [
      { name: withoutResults.name, system: withoutResults, seconds: quick ? 4 : 180 },
      ...(quick ? [] : [{ name: graphileBest.name, system: graphileBest, seconds: 45 }]),
    ],
    options,
  );
  const taken = await withSites((sites) =>
    inTurns(
      'mixed',
      1,
      loads,
      ({ name }) => name,
      async ({ system, seconds }) => {
        const { jobsPerSecond } = await drainFresh(sites, system, {
          jobs,
          payloadBytes: SMALL,
          limitMs: 20_000,
        });
        return await feed(sites, system, jobsPerSecond * SHARE, seconds);
      },
    ),
  );
  const rows = taken.flatMap(({ of, values }) => values.map((fed): Row => ({ system: of.name, ...fed })));
  const report = reportOf(rows);
  print(report);
  const own = rows.find(({ system }) => system === withoutResults.name);
  return {
    scenario: 'mixed',
    rows,
    missed: missed('mixed', own === undefined ? [] : wanted(own)),
    report,
  };
};

function wanted({ seconds, fedPerSecond, deadlocks }: Row) {
  const backlogs = seconds.map(({ backlog }) => backlog);
  return [
    {
      what: 'the largest backlog, in seconds of feeding',
      reached: Math.max(...backlogs) / fedPerSecond,
      atMost: 2,
    },
    // Autovacuum comes once a minute: by the second third it has come.
    {
      what: 'table size, the last third ÷ the one before',
      reached: growth(seconds, ({ tableBytes }) => tableBytes),
      atMost: 1.15,
    },
    {
      what: 'dead rows, the last third ÷ the one before',
      reached: growth(seconds, ({ deadRows }) => deadRows),
      atMost: 1.15,
    },
    { what: 'deadlocks', reached: deadlocks, atMost: 0 },
  ];
}

/** The most of the last third, by the most of the second. */
function growth(seconds: readonly Second[], of: (second: Second) => number): number {
  const third = Math.floor(seconds.length / 3);
  const most = (part: readonly Second[]) => Math.max(...part.map(of));
  return most(seconds.slice(2 * third)) / most(seconds.slice(third, 2 * third));
}

function reportOf(rows: readonly Row[]): Report {
  const megabytes = (bytes: number) => figure(bytes / 2 ** 20, 1);
  return {
    tables: [
      {
        title: `mixed: fed at ${SHARE * 100} % of what it drains`,
        header: [
          '',
          'fed/s',
          's',
          'p50 ms',
          'p99 ms',
          'largest backlog',
          'dead rows',
          'table MB',
          'growth',
          'WAL B/job',
          'HOT',
          'deadlocks',
        ],
        rows: rows.map((row) => [
          row.system,
          figure(row.fedPerSecond),
          figure(row.seconds.length),
          figure(row.p50Ms, 1),
          figure(row.p99Ms, 1),
          figure(Math.max(...row.seconds.map(({ backlog }) => backlog))),
          figure(Math.max(...row.seconds.map(({ deadRows }) => deadRows))),
          megabytes(Math.max(...row.seconds.map(({ tableBytes }) => tableBytes))),
          figure(
            growth(row.seconds, ({ tableBytes }) => tableBytes),
            2,
          ),
          figure(row.walBytesPerJob),
          percent(row.hotShare),
          figure(row.deadlocks),
        ]),
      },
    ],
    charts: [
      chart('mixed-backlog', 'Jobs that wait or run', 'jobs', ({ backlog }) => backlog),
      chart(
        'mixed-table',
        'Size of the table with its indexes',
        'MB',
        ({ tableBytes }) => tableBytes / 2 ** 20,
      ),
      chart('mixed-dead', 'Dead rows', 'rows', ({ deadRows }) => deadRows),
    ],
    remarks: [
      'Jobs are put in 20 times a second by a statement on the server, whose WAL is counted too. The latency is from the answer to that until the handler begins.',
      'Dead rows, table size (with indexes) and backlog: the largest of all seconds. Growth: the largest size of the last third by that of the third before. Autovacuum comes once a minute, as it does by default.',
      SERVER_TEXT,
    ],
  };

  function chart(name: string, title: string, y: string, of: (second: Second) => number) {
    const points = rows.flatMap(({ system, seconds }) =>
      seconds.map((second, index) => ({ series: system, x: index + 1, y: of(second) })),
    );
    return {
      name,
      title: `${title}, fed at ${SHARE * 100} % of what it drains`,
      kind: 'lines' as const,
      x: 'seconds',
      y,
      points,
    };
  }
}
