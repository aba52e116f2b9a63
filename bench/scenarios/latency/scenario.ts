import { chosen, inTurns, missed, withSites } from '../../harness/bench.ts';
import { Child } from '../../harness/child.ts';
import { countFootprint, type Footprint } from '../../harness/footprint.ts';
import { figure, percent } from '../../harness/ratios.ts';
import { print, type Report } from '../../harness/report.ts';
import { SERVER_TEXT } from '../../harness/server.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { Working } from '../../harness/working.ts';
import { median } from '../../median.ts';
import type { Scenario } from '../../scenario.ts';
import type { Arrivals, ArrivalsRequest } from './arrivals.ts';
import { LISTENING, type Load, loadsOf, POLLING } from './loads.ts';

/** Milliseconds from the answer to the commit until the handler began. */
interface Latencies {
  readonly jobs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

type Measured = Footprint & {
  readonly jobs: number;
  /** How many commits a second the enqueuer reached. */
  readonly reached: number;
  readonly ordinary: Latencies;
  readonly late: Latencies;
};

interface Row extends Latencies {
  readonly system: string;
  readonly isPeer: boolean;
  readonly perSecond: number;
  /** What the enqueuer reached of it. */
  readonly reachedPerSecond: number;
  /** What is told: all jobs, or only those whose transaction stayed open. */
  readonly late: boolean;
  readonly walBytesPerJob: number;
  readonly hotShare: number;
  readonly deadlocks: number;
}

/** How soon a job begins. */
export const latency: Scenario = async (options) => {
  const { quick } = options;
  const runs = options.runs ?? (quick ? 1 : 3);
  const loads = chosen(loadsOf(quick), options);
  const taken = await withSites((sites) =>
    inTurns(
      'latency',
      runs,
      loads,
      ({ name, perSecond }) => `${name}, ${perSecond}/s`,
      (load) => measure(sites, load),
    ),
  );
  const rows = taken.flatMap(({ of, values }): Row[] => {
    const row = (late: boolean): Row => {
      const latencies = values.map((value) => (late ? value.late : value.ordinary));
      return {
        system: of.name,
        isPeer: of.isPeer,
        perSecond: of.perSecond,
        reachedPerSecond: median(values.map(({ reached }) => reached)),
        late,
        jobs: latencies.reduce((sum, { jobs }) => sum + jobs, 0),
        p50Ms: median(latencies.map(({ p50Ms }) => p50Ms)),
        p99Ms: median(latencies.map(({ p99Ms }) => p99Ms)),
        maxMs: Math.max(...latencies.map(({ maxMs }) => maxMs)),
        walBytesPerJob: median(values.map(({ walBytes, jobs }) => walBytes / jobs)),
        hotShare: median(values.map(({ hotShare }) => hotShare)),
        deadlocks: Math.max(...values.map(({ deadlocks }) => deadlocks)),
      };
    };
    return of.lateEvery > 0 ? [row(false), row(true)] : [row(false)];
  });
  const report = reportOf(rows, runs);
  print(report);
  const listening = rows.filter(({ system, late }) => system === LISTENING && !late);
  const polling = rows.filter(({ system, late }) => system === POLLING && !late);
  return {
    scenario: 'latency',
    runs,
    rows,
    missed: missed('latency', [
      ...listening.flatMap(({ perSecond, p50Ms, p99Ms }) => [
        { what: `p50 ms with LISTEN at ${perSecond}/s`, reached: p50Ms, atMost: 3 },
        { what: `p99 ms with LISTEN at ${perSecond}/s`, reached: p99Ms, atMost: 15 },
      ]),
      ...rows.filter(({ system }) => system.startsWith(LISTENING)).flatMap((row) => besidePeers(row, rows)),
      ...polling.map(({ perSecond, p50Ms }) => ({
        what: `p50 ms by polling at ${perSecond}/s`,
        reached: p50Ms,
        atMost: 60,
      })),
      ...rows
        .filter(({ late, isPeer }) => late && !isPeer)
        .map(({ system, p99Ms }) => ({
          what: `p99 ms of late commits, ${system}`,
          reached: p99Ms,
          atMost: 100,
        })),
    ]),
    report,
  };
};

/** No slower than the peer that is quickest at this rate. */
function besidePeers({ system, perSecond, late, p50Ms, p99Ms }: Row, rows: readonly Row[]) {
  const peers = rows.filter((row) => row.isPeer && row.late === late && row.perSecond === perSecond);
  const of = `${system}${late ? ': the late ones' : ''}, ${perSecond}/s`;
  const least = (of: (row: Row) => number) => Math.min(...peers.map(of));
  return [
    {
      what: `p50 of ${of}, ÷ the best peer's`,
      reached: p50Ms / least((row) => row.p50Ms),
      atMost: 1,
    },
    {
      what: `p99 of ${of}, ÷ the best peer's`,
      reached: p99Ms / least((row) => row.p99Ms),
      atMost: 1,
    },
  ];
}

async function measure(sites: Sites, load: Load): Promise<Measured> {
  const { system, enqueuer, perSecond, jobs, lateEvery, openMs } = load;
  const site = await Site.open(sites, system);
  const child = await Child.start();
  try {
    const count = await countFootprint(site.sql, system.table);
    const working = await Working.start(site, { sampleEvery: 1_000, noteStarts: true });
    const request: ArrivalsRequest = {
      enqueuer,
      url: site.url,
      connections: 20,
      perSecond,
      jobs,
      lateEvery,
      openMs,
    };
    // It is what `arrivals` answers.
    const arrived = (await child.call('measure', 'arrivals', request)) as Arrivals;
    if (!(await working.untilHandled(jobs, 20_000))) throw new Error(`${load.name} has left jobs undone`);
    const handled = await working.handled();
    await working.end();
    working.checkOnce(handled, jobs);
    const starts = handled[0]?.starts ?? new Float64Array();
    return {
      ...(await count()),
      jobs,
      reached: reachedOf(arrived),
      ordinary: latenciesOf(arrived, starts, 0),
      late: latenciesOf(arrived, starts, 1),
    };
  } finally {
    await child.end();
    await site.close();
  }
}

function reachedOf({ committedMs, late }: Arrivals): number {
  // Those that are late commit long after they were begun.
  const ordinary = committedMs.filter((_, n) => late[n] === 0).sort();
  const tookMs = (ordinary.at(-1) ?? Number.NaN) - (ordinary[0] ?? Number.NaN);
  return ((committedMs.length - 1) * 1_000) / tookMs;
}

function latenciesOf({ committedMs, late }: Arrivals, starts: Float64Array, which: 0 | 1): Latencies {
  // The first ones warm up.
  const from = Math.max(Math.floor(committedMs.length * 0.05), 2);
  const values = Array.from(committedMs, (committed, n) => (starts[n] ?? Number.NaN) - committed)
    .filter((_, n) => n >= from && late[n] === which)
    .sort((a, b) => a - b);
  const at = (share: number) =>
    values[Math.min(Math.floor(values.length * share), values.length - 1)] ?? Number.NaN;
  return { jobs: values.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}

function reportOf(rows: readonly Row[], runs: number): Report {
  return {
    tables: [
      {
        title: `latency: from the answer to an enqueue's commit until the handler begins; medians of ${runs}, of the largest the largest`,
        header: [
          '',
          'jobs/s',
          'enqueued/s',
          'jobs',
          'p50 ms',
          'p99 ms',
          'largest ms',
          'WAL B/job',
          'HOT',
          'deadlocks',
        ],
        rows: rows.map((row) => [
          row.late ? `${row.system}: the late ones` : row.system,
          figure(row.perSecond),
          figure(row.reachedPerSecond),
          figure(row.jobs),
          figure(row.p50Ms, 1),
          figure(row.p99Ms, 1),
          figure(row.maxMs, 1),
          figure(row.walBytesPerJob),
          percent(row.hotShare),
          figure(row.deadlocks),
        ]),
      },
    ],
    charts: [
      {
        name: 'latency',
        title: 'Milliseconds from the commit to the handler at 100 jobs/s, p50',
        kind: 'bars',
        x: 'ms',
        y: '',
        log: true,
        points: rows
          .filter(({ perSecond, late }) => perSecond === 100 && !late)
          .map(({ system, p50Ms }) => ({ series: system, x: system, y: p50Ms })),
      },
      {
        name: 'latency-p99',
        title: 'Milliseconds from the commit to the handler by jobs per second, p99',
        kind: 'lines',
        x: 'jobs/s',
        y: 'ms',
        log: true,
        points: rows
          .filter(({ system, late }) => !late && rows.filter((row) => row.system === system).length > 2)
          .map(({ system, perSecond, p99Ms }) => ({ series: system, x: perSecond, y: p99Ms })),
      },
    ],
    remarks: [
      '"A tenth late": every tenth job is enqueued by a transaction that stays open for 2 s more, which are not counted.',
      'Enqueued/s is what the enqueuer reached, over 20 connections; where that is less than was asked for, jobs have waited to be enqueued, which is not counted.',
      'At 1 job/s the p99 is the largest of a run.',
      'Enqueuer and worker are two processes on the machine of the server, and compare times of the same clock. Without options pg-boss does one job every 2 seconds, so it is not in the table. Jobs arrive at random moments (Poisson). The WAL is that of their enqueue, too.',
      SERVER_TEXT,
    ],
  };
}
