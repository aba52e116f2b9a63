import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs } from '../../child/counter.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { SMALL } from '../../harness/system.ts';
import { Working } from '../../harness/working.ts';
import { limitedQueue } from '../../systems/drizzle-queue/system.ts';

export const PROCESSES = 8;
export const SLOTS = 5;
/** Until slots have found their owners. */
const WARM_UP_MS = 3_000;

/** What part of a limit's slots several processes use together while jobs wait. */
export async function measureSlotsInUse(
  sites: Sites,
  { jobMs, forMs }: { readonly jobMs: number; readonly forMs: number },
): Promise<number> {
  const system = limitedQueue(
    `a limit of ${SLOTS}, jobs of ${jobMs} ms`,
    { concurrency: SLOTS },
    { holdMs: jobMs },
  );
  const site = await Site.open(sites, system);
  try {
    const jobs = Math.ceil((SLOTS * (WARM_UP_MS + forMs) * 2) / jobMs);
    await site.fill({ from: 0, count: jobs, payloadBytes: SMALL });
    const working = await Working.start(site, {
      processes: PROCESSES,
      sampleEvery: 1_000,
      noteStarts: true,
    });
    await sleep(WARM_UP_MS);
    const fromMs = nowMs();
    await sleep(forMs);
    const untilMs = nowMs();
    const handled = await working.handled();
    await working.end();
    const starts = handled.flatMap(({ starts }) => [...starts].filter((startMs) => startMs > 0));
    if (starts.length >= jobs) throw new Error(`${system.name}: the jobs were too few`);
    const usedMs = starts.reduce(
      (sum, startMs) => sum + Math.max(0, Math.min(startMs + jobMs, untilMs) - Math.max(startMs, fromMs)),
      0,
    );
    return usedMs / (SLOTS * (untilMs - fromMs));
  } finally {
    await site.close();
  }
}
