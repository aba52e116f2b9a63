import { nowMs } from '../child/counter.ts';
import { countFootprint, type Footprint } from './footprint.ts';
import { Site, type Sites } from './site.ts';
import { SMALL, type System } from './system.ts';
import { Working } from './working.ts';

/** How things stood at the end of a second. */
export interface Second {
  readonly backlog: number;
  readonly deadRows: number;
  /** The table that jobs wait in, with its indexes. */
  readonly tableBytes: number;
}

export interface Fed extends Omit<Footprint, 'walBytes'> {
  readonly fedPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly walBytesPerJob: number;
  readonly seconds: readonly Second[];
}

const TICK_MS = 50;

/** Feeds a system at work, so many jobs a second for so long. */
export async function feed(sites: Sites, system: System, perSecond: number, seconds: number): Promise<Fed> {
  const site = await Site.open(sites, system);
  try {
    await site.sql`vacuum (analyze)`;
    await site.sql`checkpoint`;
    const count = await countFootprint(site.sql, system.table);
    const working = await Working.start(site, { sampleEvery: 1_000, noteStarts: true });
    /** When each batch was committed, and the first job after it. */
    const batches: { endsBefore: number; committedMs: number }[] = [];
    const watched: Second[] = [];
    const startMs = nowMs();
    let fed = 0;
    for (let tick = 1; tick * TICK_MS <= seconds * 1_000; tick++) {
      const wanted = Math.round((perSecond * tick * TICK_MS) / 1_000);
      await system.fill(site, { from: fed, count: wanted - fed, payloadBytes: SMALL });
      fed = wanted;
      batches.push({ endsBefore: fed, committedMs: nowMs() });
      if ((tick * TICK_MS) % 1_000 === 0) watched.push(await look(site, fed - (await working.count())));
      // Late ticks are not made up for by longer ones: what they feed follows at once.
      const waitMs = startMs + tick * TICK_MS - nowMs();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
    const tookSeconds = (nowMs() - startMs) / 1_000;
    if (!(await working.untilHandled(fed, 60_000))) throw new Error(`${system.name} has left jobs undone`);
    await site.emptied();
    const handled = await working.handled();
    await working.end();
    working.checkOnce(handled, fed);
    const { walBytes, ...footprint } = await count();
    return {
      ...footprint,
      fedPerSecond: fed / tookSeconds,
      ...latencies(batches, handled[0]?.starts ?? new Float64Array()),
      walBytesPerJob: walBytes / fed,
      seconds: watched,
    };
  } finally {
    await site.close();
  }
}

async function look({ sql, system }: Site, backlog: number): Promise<Second> {
  const [row] = await sql<{ bytes: number; dead: number }[]>`
    select pg_total_relation_size(to_regclass(${system.table}))::float8 as bytes,
      pg_stat_get_dead_tuples(to_regclass(${system.table}))::float8 as dead`;
  return { backlog, deadRows: row?.dead ?? Number.NaN, tableBytes: row?.bytes ?? Number.NaN };
}

function latencies(
  batches: readonly { endsBefore: number; committedMs: number }[],
  starts: Float64Array,
): { p50Ms: number; p99Ms: number } {
  const values: number[] = [];
  let n = 0;
  for (const { endsBefore, committedMs } of batches) {
    for (; n < endsBefore; n++) values.push((starts[n] ?? Number.NaN) - committedMs);
  }
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
