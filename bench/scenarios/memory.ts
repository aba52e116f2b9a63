import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { figure } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { Site, type Sites } from '../harness/site.ts';
import { SMALL, type System } from '../harness/system.ts';
import { Working } from '../harness/working.ts';
import { median } from '../median.ts';
import type { Scenario } from '../scenario.ts';
import { drizzleQueue, withoutResults } from '../systems/drizzle-queue/system.ts';
import { graphileBest } from '../systems/graphile-worker/system.ts';
import { pgBossBest } from '../systems/pg-boss/system.ts';

const STEPS = 10;
const MEGABYTE = 2 ** 20;

/** Payloads that Postgres cannot make smaller: it counts what they take in the table, and a worker holds what they take in JSON. */
const incompressible: System = {
  ...drizzleQueue('payloads that do not compress'),
  async fill({ sql }, { from, count, payloadBytes }) {
    await sql`
      insert into queue_jobs (queue, kind, payload, max_attempts)
      select 'bench', 'bench', jsonb_build_object('n', i, 'pad', (
        select string_agg(md5(i::text || '/' || part), '') from generate_series(1, ${payloadBytes}::int4 / 32) as part)), 20
      from generate_series(${from}::int4, ${from + count - 1}::int4) as i`;
  },
};

const LARGE_PAYLOADS = [
  incompressible,
  drizzleQueue('payloads that compress well'),
  graphileBest,
  pgBossBest,
] as const;

interface Row {
  readonly system: string;
  /** The most that the process took, beyond what it took before it began, in bytes. */
  readonly growthBytes: number;
}

/** What memory a worker takes. */
export const memory: Scenario = async (options) => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 10_000 : 1_000_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const largeJobs = quick ? 20 : 200;
  const [heaps, taken] = await withSites(async (sites) => [
    await heapsOf(sites, jobs / STEPS),
    await inTurns(
      'memory',
      runs,
      chosen(LARGE_PAYLOADS, options),
      ({ name }) => name,
      (system) => growthOf(sites, system, largeJobs),
    ),
  ]);
  const rows = taken.map(({ of, values }): Row => ({ system: of.name, growthBytes: median(values) }));
  const report = reportOf(heaps, rows, jobs, largeJobs, runs);
  print(report);
  return {
    scenario: 'memory',
    jobs,
    largeJobs,
    heaps,
    rows,
    missed: missed('memory', [
      { what: 'heap at the end ÷ after two tenths', reached: grownBy(heaps), atMost: 1.2 },
      ...rows
        .filter(({ system }) => system.startsWith('drizzle-queue'))
        .map(({ system, growthBytes }) => ({
          what: `MB for 1 MB payloads, ${system}`,
          reached: growthBytes / MEGABYTE,
          atMost: 300,
        })),
    ]),
    report,
  };
};

/** The heap after each tenth of the jobs, in bytes, garbage collected. */
async function heapsOf(sites: Sites, jobsPerStep: number): Promise<number[]> {
  const site = await Site.open(sites, withoutResults);
  try {
    const working = await Working.start(site, { sampleEvery: 1_000 });
    const heaps: number[] = [];
    for (let step = 1; step <= STEPS; step++) {
      console.error(`memory: ${step * jobsPerStep} jobs …`);
      await site.system.fill(site, {
        from: (step - 1) * jobsPerStep,
        count: jobsPerStep,
        payloadBytes: SMALL,
      });
      if (!(await working.untilHandled(step * jobsPerStep, 60_000)))
        throw new Error('The worker has left jobs undone');
      await site.emptied();
      const [child] = working.children;
      if (child !== undefined) heaps.push((await child.call('memory')).heapBytes);
    }
    await working.end();
    return heaps;
  } finally {
    await site.close();
  }
}

/** What the process took at most for payloads of a megabyte, beyond what it took with its code loaded, in bytes. */
async function growthOf(sites: Sites, system: System, jobs: number): Promise<number> {
  const site = await Site.open(sites, system);
  try {
    await site.fill({ from: 0, count: jobs, payloadBytes: MEGABYTE });
    const working = await Working.start(site, { sampleEvery: 1 });
    if (!(await working.untilHandled(jobs, 60_000))) throw new Error(`${system.name} has left jobs undone`);
    await site.emptied();
    const [child] = working.children;
    const [start] = working.startMemory;
    const growth =
      ((await child?.call('memory'))?.maxRssBytes ?? Number.NaN) - (start?.rssBytes ?? Number.NaN);
    await working.end();
    return growth;
  } finally {
    await site.close();
  }
}

function grownBy(heaps: readonly number[]): number {
  return (heaps.at(-1) ?? Number.NaN) / (heaps[1] ?? Number.NaN);
}

function reportOf(
  heaps: readonly number[],
  rows: readonly Row[],
  jobs: number,
  largeJobs: number,
  runs: number,
): Report {
  return {
    tables: [
      {
        title: `memory: the heap of one worker, by jobs done`,
        header: ['jobs', ...heaps.map((_, step) => figure(((step + 1) * jobs) / STEPS))],
        rows: [['heap MB', ...heaps.map((bytes) => figure(bytes / MEGABYTE, 1))]],
      },
      {
        title: `memory: ${largeJobs} jobs with payloads of 1 MB; medians of ${runs}`,
        header: ['', 'most, beyond an idle process, MB'],
        rows: rows.map(({ system, growthBytes }) => [system, figure(growthBytes / MEGABYTE)]),
      },
    ],
    charts: [],
    remarks: [
      'The heap is measured after a garbage collection. The most is that of the whole process as the system counts it (its peak resident set), beyond what it took before it began to work.',
      "The peers' payloads compress well, as most do.",
      SERVER_TEXT,
    ],
  };
}
