import type { Handled } from '../child/counter.ts';
import { Child } from './child.ts';
import { countFootprint, type Footprint } from './footprint.ts';
import { Site, type Sites } from './site.ts';
import type { System } from './system.ts';

export interface DrainLoad {
  readonly jobs: number;
  readonly payloadBytes: number;
  /** Stop looking after this time; what was done until then is the figure. */
  readonly limitMs: number;
  /** How many processes work. @default 1 */
  readonly processes?: number;
}

/** What one drain has shown. */
export interface Drained extends Omit<Footprint, 'walBytes'> {
  readonly jobs: number;
  readonly jobsPerSecond: number;
  readonly walBytesPerJob: number;
  /** Processor time of the worker's process per job, in microseconds. */
  readonly cpuUsPerJob: number;
}

/** Jobs that are done before the measuring begins, beside those that are measured: code gets warm, pools connect. */
const WARM_UP_SHARE = 0.1;

/** Fills a fresh database, and measures how fast the system works it off. */
export async function drainFresh(sites: Sites, system: System, load: DrainLoad): Promise<Drained> {
  const site = await Site.open(sites, system);
  try {
    const { payloadBytes } = load;
    const total = Math.round(load.jobs * (system.share ?? 1) * (1 + WARM_UP_SHARE));
    await site.fill({ from: 0, count: total, payloadBytes });
    const { drain = (_, load) => drainSite(site, load, 0) } = system;
    return await drain(site, { ...load, jobs: total });
  } finally {
    await site.close();
  }
}

/** Measures how fast the system works off what is there: `load.jobs` jobs, the numbers from `from` on. */
export async function drainSite(site: Site, load: DrainLoad, from: number): Promise<Drained> {
  const { system } = site;
  const { jobs, limitMs, processes = 1 } = load;
  const count = await countFootprint(site.sql, system.table);
  const children = await Promise.all(Array.from({ length: processes }, () => Child.start()));
  const sampleEvery = Math.max(1, Math.floor(jobs / 1_000 / processes));
  let endMs: number | undefined;
  let handled: Handled[];
  try {
    await Promise.all(
      children.map((child) =>
        child.call('work', {
          program: system.program,
          url: site.url,
          options: system.options,
          sampleEvery,
          noteStarts: false,
        }),
      ),
    );
    if (await untilHandled(children, jobs, limitMs)) endMs = await site.emptied();
    handled = await Promise.all(children.map((child) => child.call('handled')));
  } finally {
    await Promise.all(children.map((child) => child.end()));
  }
  const done = handled.reduce((sum, each) => sum + each.count, 0);
  if (endMs !== undefined) checkOnce(system.name, handled, from, jobs);
  const { walBytes, ...footprint } = await count();
  return {
    ...footprint,
    jobs: done,
    jobsPerSecond: rateOf(handled, endMs),
    walBytesPerJob: walBytes / done,
    cpuUsPerJob: (handled.reduce((sum, { cpuMs }) => sum + cpuMs, 0) * 1_000) / done,
  };
}

async function untilHandled(children: readonly Child[], jobs: number, limitMs: number): Promise<boolean> {
  const [only] = children;
  if (children.length === 1 && only !== undefined) return await only.call('untilHandled', jobs, limitMs);
  for (const deadline = performance.now() + limitMs; performance.now() < deadline; ) {
    const counts = await Promise.all(children.map((child) => child.call('count')));
    if (counts.reduce((sum, count) => sum + count, 0) >= jobs) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}

/** From the moment that the warm-up was over, to the last job done (and written), or the last that was seen. */
function rateOf(handled: readonly Handled[], endMs: number | undefined): number {
  const samples = Float64Array.from(handled.flatMap(({ samples }) => [...samples])).sort();
  const done = handled.reduce((sum, each) => sum + each.count, 0);
  const perSample = done / samples.length;
  const first = Math.floor((samples.length * WARM_UP_SHARE) / (1 + WARM_UP_SHARE));
  const counted = endMs === undefined ? (samples.length - 1 - first) * perSample : done - 1 - first * perSample;
  const last = endMs ?? samples.at(-1) ?? Number.NaN;
  return (counted * 1_000) / (last - (samples[first] ?? Number.NaN));
}

/** @throws Error unless each of the jobs was done, and none twice */
function checkOnce(name: string, handled: readonly Handled[], from: number, jobs: number): void {
  const times = new Uint32Array(from + jobs);
  for (const { seen } of handled) {
    for (let n = from; n < Math.min(seen.length, from + jobs); n++) times[n] = (times[n] ?? 0) + (seen[n] ?? 0);
  }
  const missing = times.subarray(from).filter((count) => count === 0).length;
  const twice =
    times.subarray(from).filter((count) => count > 1).length +
    handled.reduce((sum, { repeated }) => sum + repeated, 0);
  if (missing > 0 || twice > 0) throw new Error(`${name}: ${missing} of ${jobs} jobs were not done, ${twice} twice`);
}
