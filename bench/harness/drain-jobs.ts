import type { Handled } from '../child/counter.ts';
import { median } from '../median.ts';
import { countFootprint, type Footprint } from './footprint.ts';
import { Site, type Sites } from './site.ts';
import type { System } from './system.ts';
import { Working } from './working.ts';

export interface DrainLoad {
  readonly jobs: number;
  readonly payloadBytes: number;
  /** Stop looking after this time; what was done until then is the figure. */
  readonly limitMs: number;
  /** So many jobs at the end are not counted: while they run, slots stand empty. @default 0 */
  readonly uncounted?: number;
  /** How many processes work. @default 1 */
  readonly processes?: number;
}

/** What one drain has shown. */
export interface Drained extends Omit<Footprint, 'walBytes' | 'commits' | 'statements'> {
  readonly jobs: number;
  readonly jobsPerSecond: number;
  readonly walBytesPerJob: number;
  readonly commitsPerJob: number;
  /** NaN on a server that does not count them. */
  readonly statementsPerJob: number;
  /** Processor time of the worker's processes per job, in microseconds. */
  readonly cpuUsPerJob: number;
}

/** Jobs that are done before the measuring begins, beside those that are measured: code gets warm, pools connect. */
const WARM_UP_SHARE = 0.1;
/** As many as a rate can be told from. */
const MIN_JOBS = 3;

/** Fills a fresh database, and measures how fast the system works it off. */
export async function drainFresh(sites: Sites, system: System, load: DrainLoad): Promise<Drained> {
  const site = await Site.open(sites, system);
  try {
    const { payloadBytes } = load;
    const jobs = Math.max(Math.round(load.jobs * (system.share ?? 1) * (1 + WARM_UP_SHARE)), MIN_JOBS);
    await site.fill({ from: 0, count: jobs, payloadBytes });
    const { drain = drainSite } = system;
    return await drain(site, { ...load, jobs });
  } finally {
    await site.close();
  }
}

/** Measures how fast the system works off the jobs that are there, the numbers from 0 on. */
async function drainSite(site: Site, load: DrainLoad): Promise<Drained> {
  const { jobs, limitMs, uncounted = 0, processes = 1 } = load;
  const count = await countFootprint(site.sql, site.system.table);
  const sampleEvery = Math.max(1, Math.floor(jobs / 1_000 / processes));
  const working = await Working.start(site, { processes, sampleEvery });
  let endMs: number | undefined;
  let handled: Handled[];
  try {
    if (await working.untilHandled(jobs, limitMs)) endMs = await site.emptied();
    handled = await working.handled();
  } finally {
    await working.end();
  }
  if (endMs !== undefined) working.checkOnce(handled, jobs);
  const done = doneBy(handled);
  const { walBytes, commits, statements, ...footprint } = await count();
  return {
    ...footprint,
    jobs: done,
    jobsPerSecond: uncounted === 0 ? rateOf(handled, endMs) : rateBefore(handled, jobs - uncounted),
    walBytesPerJob: walBytes / done,
    commitsPerJob: commits / done,
    statementsPerJob: statements / done,
    cpuUsPerJob: (handled.reduce((sum, { cpuMs }) => sum + cpuMs, 0) * 1_000) / done,
  };
}

/** From the moment that the warm-up was over, to the last job done (and written), or the last that was seen. */
function rateOf(handled: readonly Handled[], endMs: number | undefined): number {
  const samples = Float64Array.from(handled.flatMap(({ samples }) => [...samples])).sort();
  const done = doneBy(handled);
  const perSample = done / samples.length;
  const first = Math.floor((samples.length * WARM_UP_SHARE) / (1 + WARM_UP_SHARE));
  const counted =
    endMs === undefined ? (samples.length - 1 - first) * perSample : done - 1 - first * perSample;
  const last = endMs ?? samples.at(-1) ?? Number.NaN;
  return (counted * 1_000) / (last - (samples[first] ?? Number.NaN));
}

/** From the moment that the warm-up was over, to that at which so many jobs were done, or the last that was seen. */
function rateBefore(handled: readonly Handled[], jobs: number): number {
  const samples = Float64Array.from(handled.flatMap(({ samples }) => [...samples])).sort();
  const perSample = doneBy(handled) / samples.length;
  const first = Math.floor((samples.length * WARM_UP_SHARE) / (1 + WARM_UP_SHARE));
  const last = Math.min(Math.floor(jobs / perSample), samples.length - 1);
  const tookMs = (samples[last] ?? Number.NaN) - (samples[first] ?? Number.NaN);
  return ((last - first) * perSample * 1_000) / tookMs;
}

function doneBy(handled: readonly Handled[]): number {
  return handled.reduce((sum, { count }) => sum + count, 0);
}

/** The medians of several drains; of the deadlocks, the most. */
export function medianOfDrains(drains: readonly Drained[]): Drained {
  const of = (value: (drained: Drained) => number) => median(drains.map(value));
  return {
    jobs: of(({ jobs }) => jobs),
    jobsPerSecond: of(({ jobsPerSecond }) => jobsPerSecond),
    walBytesPerJob: of(({ walBytesPerJob }) => walBytesPerJob),
    hotShare: of(({ hotShare }) => hotShare),
    deadlocks: Math.max(...drains.map(({ deadlocks }) => deadlocks)),
    commitsPerJob: of(({ commitsPerJob }) => commitsPerJob),
    statementsPerJob: of(({ statementsPerJob }) => statementsPerJob),
    cpuUsPerJob: of(({ cpuUsPerJob }) => cpuUsPerJob),
  };
}
