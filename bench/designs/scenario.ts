import { cpus } from 'node:os';
import { startPostgres } from '../../test/support/embedded-postgres.ts';
import { median } from '../median.ts';
import { printTable } from '../print-table.ts';
import type { Scenario } from '../scenario.ts';
import { advisoryWindow } from './advisory-window.ts';
import { engine } from './engine.ts';
import { forUpdate } from './for-update.ts';
import { hold } from './hold.ts';
import { jobsAndResults, retrieval } from './jobs-and-results.ts';
import { OpenDesign, type Sample } from './measure.ts';
import { minId } from './min-id.ts';
import { pop } from './pop.ts';

/** In the order in which the field got from one to the next. */
const DESIGNS = [forUpdate, minId, advisoryWindow, pop, hold, jobsAndResults, engine];

/** How many jobs wait. A fresh queue has no past either: its tables are emptied before each run. */
const DEPTHS = { fresh: 10_000, deep: 100_000 };
export type Depth = keyof typeof DEPTHS;

/** The medians of one design under one load. */
export interface Measurement extends Sample {
  readonly design: string;
  readonly depth: Depth;
  readonly workMs: number;
  readonly consumers: number;
}

/**
 * The same work on seven designs: jobs per second by the number of consumers, with and without work per job, in a fresh and in a
 * deep queue. Draws `docs/designs.svg`. With `--quick` one short run of each and no drawing: to see that it works.
 */
export const designs: Scenario = async ({ quick }) => {
  const consumerCounts = quick ? [1, 4] : [1, 2, 4, 8, 16];
  const runs = quick ? 1 : 5;
  const start = performance.now();
  // As safe as a server is by default: what a commit costs is a part of what a design costs.
  const server = await startPostgres({
    settings: { fsync: true, synchronous_commit: true, full_page_writes: true },
  });
  try {
    const most = Math.max(...consumerCounts);
    const open: OpenDesign[] = [];
    for (const design of [...DESIGNS, retrieval]) open.push(await OpenDesign.open(server.url, design, most));
    const samples = new Map<string, { load: Omit<Measurement, keyof Sample>; taken: Sample[] }>();
    // All loads once, then all of them again: whatever else the machine does for a while disturbs one run of five, and all alike.
    for (let run = 1; run <= runs; run++) {
      for (const depth of ['fresh', 'deep'] as const) {
        console.error(`Run ${run} of ${runs}, ${depth} …`);
        if (depth === 'deep') await deepen(open);
        for (const workMs of [0, 5]) {
          for (const consumers of consumerCounts) {
            for (const each of open) {
              const design = each.design.name;
              // His figure is about a queue that is never empty, without work.
              if (design === retrieval.name && (depth === 'fresh' || workMs > 0)) continue;
              if (depth === 'fresh') await each.beginWith(DEPTHS.fresh);
              else await each.fillUpTo(DEPTHS.deep);
              const key = [design, depth, workMs, consumers].join();
              const known = samples.get(key) ?? { load: { design, depth, workMs, consumers }, taken: [] };
              known.taken.push(await each.run({ consumers, workMs }));
              samples.set(key, known);
            }
          }
        }
      }
    }
    for (const each of open) await each.close();
    const measurements = [...samples.values()].map(({ load, taken }) => ({ ...load, ...medians(taken) }));
    for (const depth of ['fresh', 'deep'] as const) {
      for (const workMs of [0, 5]) print(measurements, depth, workMs, consumerCounts);
    }
    const best = Math.max(...measurements.filter(({ design }) => design === retrieval.name).map(rate));
    const cores = cpus().length;
    console.log(
      `\nNishimura's statement alone, committed: ${Math.round(best)} retrievals/s on ${cores} cores ` +
        '(his: 7,200 on 8, PostgreSQL 9.5).',
    );
    if (!quick) {
      const { drawChart } = await import('./chart.ts');
      console.log(
        `Drawn: ${await drawChart(measurements.filter(({ design }) => design !== retrieval.name))}`,
      );
    }
    console.log(`${Math.round((performance.now() - start) / 1_000)} s\n`);
    return { scenario: 'designs', cores, runs, retrievalsPerSecond: Math.round(best), measurements };
  } finally {
    await server.stop();
  }
};

async function deepen(open: readonly OpenDesign[]): Promise<void> {
  for (const each of open) {
    await each.beginWith(DEPTHS.deep);
    await each.vacuum();
  }
}

function rate({ jobsPerSecond }: Sample): number {
  return jobsPerSecond;
}

function medians(samples: readonly Sample[]): Sample {
  return {
    jobsPerSecond: round(median(samples.map(rate)), 1),
    retriesPerJob: round(median(samples.map(({ retriesPerJob }) => retriesPerJob)), 3),
    emptyPerJob: round(median(samples.map(({ emptyPerJob }) => emptyPerJob)), 3),
    waiting: round(median(samples.map(({ waiting }) => waiting)), 2),
  };
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function print(
  all: readonly Measurement[],
  depth: Depth,
  workMs: number,
  consumerCounts: readonly number[],
): void {
  const rows = DESIGNS.map(({ name }) => {
    const own = all.filter((m) => m.design === name && m.depth === depth && m.workMs === workMs);
    const last = own.at(-1);
    return [
      name,
      ...own.map(({ jobsPerSecond }) => String(Math.round(jobsPerSecond))),
      ...[last?.retriesPerJob, last?.emptyPerJob, last?.waiting].map((value) =>
        (value ?? Number.NaN).toFixed(2),
      ),
    ];
  });
  printTable(
    `${depth === 'fresh' ? 'A fresh queue' : `${DEPTHS.deep} jobs deep`}, ${workMs} ms of work: jobs/s by consumers; ` +
      `with ${consumerCounts.at(-1)}: retries and empty claims per job, connections that wait for a lock`,
    ['', ...consumerCounts.map(String), 'retries', 'empty', 'waiting'],
    rows,
  );
}
