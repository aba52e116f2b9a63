import { setTimeout as sleep } from 'node:timers/promises';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { nowMs } from '../../child/counter.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { SMALL } from '../../harness/system.ts';
import { Working } from '../../harness/working.ts';
import { median } from '../../median.ts';
import { groupedQueue } from '../../systems/drizzle-queue/system.ts';

/** As many have work: a round of them. */
export const TENANTS = 5;
const SLOTS = 5;
/** A timer of Node.js is late: jobs do not take less than this. */
const MIN_PACE_MS = 1;

export interface FirstJobs {
  /** How many jobs of others began before it, in the median and at most. */
  readonly others: number;
  readonly most: number;
  /** How long it took from its commit, in the median. */
  readonly waitMs: number;
}

/** Tenants keep a worker busy; how long the first job of another tenant waits, again and again. */
export async function measureFirstJobs(
  sites: Sites,
  { jobMs, visits }: { readonly jobMs: number; readonly visits: number },
): Promise<FirstJobs> {
  const limits = { groups: {} };
  const pauseMs = Math.max(200, 2.5 * jobMs);
  const jobs = Math.ceil((SLOTS * (visits + 4) * pauseMs * 1.5) / Math.max(jobMs, MIN_PACE_MS));
  const system = groupedQueue(`first jobs beside jobs of ${jobMs} ms`, limits, `(i % ${TENANTS})::text`, {
    holdMs: jobMs,
    worker: { queues: { bench: { concurrency: SLOTS } } },
  });
  const site = await Site.open(sites, system);
  try {
    await site.fill({ from: 0, count: jobs, payloadBytes: SMALL });
    const queue = createQueue({ limits: limitsIn(control, { bench: limits }) });
    const job = defineJob('bench', { payload: unvalidated<{ n: number }>(), queue: 'bench' });
    const db = drizzle({ client: site.sql });
    const working = await Working.start(site, { sampleEvery: 1_000, noteStarts: true });
    await working.untilHandled(3 * SLOTS, 30_000);
    const committedMs: number[] = [];
    for (let visit = 0; visit < visits; visit++) {
      await sleep(pauseMs);
      await queue.enqueue(db, job, { n: jobs + visit }, { group: `visitor ${visit}` });
      committedMs.push(nowMs());
    }
    await sleep(pauseMs);
    const [{ starts } = { starts: new Float64Array() }] = await working.handled();
    await working.end();
    const others = starts.slice(0, jobs).filter((startMs) => startMs > 0);
    if (others.length === jobs) throw new Error(`${system.name}: the jobs of the tenants were too few`);
    const waits = committedMs.map((fromMs, visit) => {
      const untilMs = starts[jobs + visit] ?? 0;
      if (untilMs === 0) throw new Error(`${system.name}: the job of visitor ${visit} did not begin`);
      return {
        others: others.filter((startMs) => startMs > fromMs && startMs < untilMs).length,
        ms: Math.max(untilMs - fromMs, 0),
      };
    });
    return {
      others: median(waits.map((wait) => wait.others)),
      most: Math.max(...waits.map((wait) => wait.others)),
      waitMs: median(waits.map(({ ms }) => ms)),
    };
  } finally {
    await site.close();
  }
}
