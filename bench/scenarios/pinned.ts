import postgres from 'postgres';
import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { countFootprint, type Footprint } from '../harness/footprint.ts';
import { figure, percent, times } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { Site, type Sites } from '../harness/site.ts';
import { SMALL, type System } from '../harness/system.ts';
import { Working } from '../harness/working.ts';
import { median } from '../median.ts';
import type { Scenario } from '../scenario.ts';
import { withoutResults } from '../systems/drizzle-queue/system.ts';
import { graphileBest } from '../systems/graphile-worker/system.ts';
import { pgBossBest } from '../systems/pg-boss/system.ts';

const STEPS = 10;
/** So much of a step's jobs is done before its measuring begins: the worker has to notice them first. */
const WARM_UP_SHARE = 0.1;
/** A system that needs longer for all steps is stopped: what it has shown until then tells enough. */
const LIMIT_MS = 30_000;

interface Pinned extends Footprint {
  /** Jobs per second of each step that was finished. */
  readonly steps: readonly number[];
  readonly jobs: number;
}

/** The same in steps, while an old snapshot keeps every dead row where it is. */
export const pinned: Scenario = async (options) => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 2_000 : 500_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const systems = chosen([withoutResults, graphileBest, pgBossBest], options);
  const taken = await withSites((sites) =>
    inTurns(
      'pinned',
      runs,
      systems,
      ({ name }) => name,
      (system) => drainPinned(sites, system, jobs / STEPS),
    ),
  );
  const rows = taken.map(({ of, values }) => {
    const finished = Math.min(...values.map(({ steps }) => steps.length));
    const steps = Array.from({ length: finished }, (_, step) =>
      median(values.map((value) => value.steps[step] ?? Number.NaN)),
    );
    const walBytesPerJob = median(values.map(({ walBytes, jobs }) => walBytes / jobs));
    const hotShare = median(values.map((value) => value.hotShare));
    return {
      system: of.name,
      steps,
      kept: keptOf(steps),
      walBytesPerJob,
      hotShare,
      deadlocks: Math.max(...values.map((value) => value.deadlocks)),
    };
  });
  const report = reportOf(rows, jobs, runs);
  print(report);
  const own = rows.find(({ system }) => system === withoutResults.name);
  return {
    scenario: 'pinned',
    jobs,
    runs,
    rows,
    missed: missed('pinned', [{ what: 'end ÷ start', reached: own?.kept ?? Number.NaN, atLeast: 0.9 }]),
    report,
  };
};

async function drainPinned(sites: Sites, system: System, jobsPerStep: number): Promise<Pinned> {
  const site = await Site.open(sites, system);
  const reader = postgres(site.url, { max: 1 });
  const snapshot = await reader.reserve();
  try {
    await snapshot`begin isolation level repeatable read`;
    await snapshot`select count(*) from pg_class`;
    const count = await countFootprint(site.sql, system.table);
    const sampleEvery = Math.max(1, Math.floor(jobsPerStep / 100));
    const working = await Working.start(site, { sampleEvery });
    const steps: number[] = [];
    const deadline = performance.now() + LIMIT_MS;
    try {
      for (let step = 0; step < STEPS; step++) {
        await system.fill(site, { from: step * jobsPerStep, count: jobsPerStep, payloadBytes: SMALL });
        if (
          !(await working.untilHandled((step + 1) * jobsPerStep, Math.max(deadline - performance.now(), 0)))
        )
          break;
        steps.push(
          rateOfStep(
            (await working.handled())[0]?.samples ?? new Float64Array(),
            step,
            jobsPerStep / sampleEvery,
            sampleEvery,
          ),
        );
      }
    } finally {
      await working.end();
    }
    return { steps, jobs: Math.max(steps.length, 1) * jobsPerStep, ...(await count()) };
  } finally {
    await snapshot`rollback`;
    snapshot.release();
    await reader.end();
    await site.close();
  }
}

function rateOfStep(samples: Float64Array, step: number, perStep: number, sampleEvery: number): number {
  const first = Math.ceil((step + WARM_UP_SHARE) * perStep);
  const last = Math.min(Math.floor((step + 1) * perStep), samples.length) - 1;
  return (
    ((last - first) * sampleEvery * 1_000) / ((samples[last] ?? Number.NaN) - (samples[first] ?? Number.NaN))
  );
}

/** How much of its first throughput is left at last: medians of three steps each, since one step is soon disturbed. */
function keptOf(steps: readonly number[]): number {
  return median(steps.slice(-3)) / median(steps.slice(0, 3));
}

interface Row {
  readonly system: string;
  readonly steps: readonly number[];
  readonly kept: number;
  readonly walBytesPerJob: number;
  readonly hotShare: number;
  readonly deadlocks: number;
}

function reportOf(rows: readonly Row[], jobs: number, runs: number): Report {
  const shown = [1, 2, 4, 6, 8, 10];
  return {
    tables: [
      {
        title: `pinned: an old snapshot is held open; jobs/s in each of ${STEPS} steps of ${figure(jobs / STEPS)} jobs; medians of ${runs}`,
        header: ['', ...shown.map((step) => `step ${step}`), 'end ÷ start', 'WAL B/job', 'HOT', 'deadlocks'],
        rows: rows.map(({ system, steps, kept, walBytesPerJob, hotShare, deadlocks }) => [
          system,
          ...shown.map((step) => figure(steps[step - 1])),
          times(kept, 1),
          figure(walBytesPerJob),
          percent(hotShare),
          figure(deadlocks),
        ]),
      },
    ],
    charts: [
      {
        name: 'pinned',
        title: 'Jobs per second while a snapshot pins the dead rows',
        kind: 'lines',
        x: 'jobs done since the snapshot',
        y: 'jobs/s',
        points: rows.flatMap(({ system, steps }) =>
          steps.map((rate, step) => ({ series: system, x: ((step + 1) * jobs) / STEPS, y: rate })),
        ),
      },
    ],
    remarks: [
      'end ÷ start: the median of the last three steps that were finished, by that of the first three.',
      `A system is stopped after ${LIMIT_MS / 1_000} s; a dash is a step that it did not get to. BullMQ is left out: it would take minutes to make so many dead rows.`,
      'The worker runs throughout, and each step is put in by one transaction, whose WAL is counted too.',
      SERVER_TEXT,
    ],
  };
}
