import type { Drained } from '../../harness/drain-jobs.ts';
import { countFootprint } from '../../harness/footprint.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { SMALL, type System } from '../../harness/system.ts';
import { Working } from '../../harness/working.ts';

/** Jobs that are begun before the measuring does. */
const WARM_UP_SHARE = 0.1;

/** Drains a queue, and measures how fast the jobs below a number begin, whatever stands beside them. */
export async function drainOthers(
  sites: Sites,
  system: System,
  { others, beside, limitMs }: { readonly others: number; readonly beside: number; readonly limitMs: number },
): Promise<Drained> {
  const site = await Site.open(sites, system);
  try {
    const jobs = others + beside;
    await site.fill({ from: 0, count: jobs, payloadBytes: SMALL });
    const count = await countFootprint(site.sql, system.table);
    const working = await Working.start(site, { sampleEvery: 1_000, noteStarts: true });
    const all = await working.untilHandled(jobs, limitMs);
    if (all) await site.emptied();
    const handled = await working.handled();
    await working.end();
    if (all) working.checkOnce(handled, jobs);
    const { walBytes, commits, statements, ...footprint } = await count();
    const [{ count: done, cpuMs, starts } = { count: 0, cpuMs: 0, starts: new Float64Array() }] = handled;
    const begun = starts
      .slice(0, others)
      .filter((startMs) => startMs > 0)
      .sort();
    const first = Math.floor(begun.length * WARM_UP_SHARE);
    return {
      ...footprint,
      jobs: begun.length,
      jobsPerSecond:
        ((begun.length - 1 - first) * 1_000) / ((begun.at(-1) ?? Number.NaN) - (begun[first] ?? Number.NaN)),
      walBytesPerJob: walBytes / done,
      commitsPerJob: commits / done,
      statementsPerJob: statements / done,
      cpuUsPerJob: (cpuMs * 1_000) / done,
    };
  } finally {
    await site.close();
  }
}
