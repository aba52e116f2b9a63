import { chosen, withSites } from '../../harness/bench.ts';
import { figure } from '../../harness/ratios.ts';
import { print, type Report } from '../../harness/report.ts';
import { SERVER_TEXT } from '../../harness/server.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { SMALL } from '../../harness/system.ts';
import { Working } from '../../harness/working.ts';
import type { Scenario } from '../../scenario.ts';
import { drizzleQueue } from '../../systems/drizzle-queue/system.ts';

/** Few look whenever they wake; from 76 on each looks less often. */
const LIVING = [10, 80, 300].map((living) => ({ name: `${living} living`, living }));
const PROCESSES = 10;
/** So many may be killed for each that is: half of all slots are free, so not every worker has got a job. */
const CANDIDATES = 2;
/** Right after its start a server's free locks say nothing; and new workers look at once. */
const SETTLE_MS = 16_000;

interface Row {
  readonly living: number;
  /** From the kill to the claim of each job of the dead worker by another, in milliseconds; a list for each kill. */
  readonly recoveredMs: readonly (readonly number[])[];
}

/** How soon the jobs of a killed worker run again, by the number of those that live. */
export const recovery: Scenario = async (options) => {
  const { quick } = options;
  const kills = options.runs ?? (quick ? 1 : 10);
  const rows = await withSites(
    async (sites) => {
      const rows: Row[] = [];
      for (const { living } of chosen(quick ? LIVING.slice(0, 1) : LIVING, options)) {
        rows.push(await measure(sites, living, kills));
      }
      return rows;
    },
    { max_connections: 1_200 },
  );
  const report = reportOf(rows, kills);
  print(report);
  return { scenario: 'recovery', kills, rows, report };
};

async function measure(sites: Sites, living: number, kills: number): Promise<Row> {
  const system = drizzleQueue('recovery', {
    holdMs: 3_600_000,
    poolSize: 3,
    workers: living / PROCESSES,
    worker: { shutdownTimeoutMs: 0 },
  });
  const site = await Site.open(sites, system);
  const victims = { ...system, options: { ...(system.options as object), workers: 1 } };
  const start = { sampleEvery: 1_000 };
  try {
    const fleet = await Working.start(site, { ...start, processes: PROCESSES });
    const candidates = kills * CANDIDATES;
    const lone = await Working.start({ system: victims, url: site.url }, { ...start, processes: candidates });
    const recoveredMs: number[][] = [];
    try {
      await pause(SETTLE_MS);
      // Fewer than there are slots, so that those of a dead worker find room at once.
      await system.fill(site, { from: 0, count: (living + candidates) * 5, payloadBytes: SMALL });
      const pids = new Set(lone.children.map(({ pid }) => pid));
      while (recoveredMs.length < kills) {
        const { id, pid } = await nextHolding(site, pids);
        pids.delete(pid);
        recoveredMs.push(await killAndWait(site, id, pid));
        console.error(
          `recovery: ${living} living, after ${figure(Math.max(...(recoveredMs.at(-1) ?? [])))} ms`,
        );
      }
    } finally {
      await fleet.end();
    }
    return { living, recoveredMs };
  } finally {
    await site.close();
  }
}

/**
 * One of these processes whose worker has claimed a job, and that worker. Jobs are not added for it: others
 * would take most of them, until they have no slot left for those of the dead.
 */
async function nextHolding(
  { sql }: Site,
  pids: ReadonlySet<number>,
): Promise<{ readonly id: number; readonly pid: number }> {
  for (const deadline = performance.now() + 30_000; performance.now() < deadline; await pause(50)) {
    const holders = await sql<{ id: number; name: string }[]>`
      select w.id::int4 as id, w.name from queue_workers as w
      where exists (select from queue_jobs as j where j.worker_id = w.id) order by w.id`;
    for (const { id, name } of holders) {
      const pid = Number(name.slice(name.lastIndexOf(':') + 1));
      if (pids.has(pid)) return { id, pid };
    }
  }
  throw new Error('None of the processes has got a job');
}

async function killAndWait({ sql }: Site, worker: number, pid: number): Promise<number[]> {
  const jobs = await sql<{ id: string }[]>`select id from queue_jobs where worker_id = ${worker}`;
  const ids = jobs.map(({ id }) => id);
  const [killed] = await sql<
    { at: number }[]
  >`select extract(epoch from clock_timestamp())::float8 * 1000 as at`;
  process.kill(pid, 'SIGKILL');
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await pause(20)) {
    // One that was claimed ahead has not begun, and has no time yet.
    const claimed = await sql<{ at: number }[]>`
      select extract(epoch from claimed_at)::float8 * 1000 as at from queue_jobs
      where queue = 'bench' and id = any(${ids}::int8[]) and worker_id <> ${worker} and claimed_at is not null`;
    if (claimed.length === ids.length) return claimed.map(({ at }) => at - (killed?.at ?? Number.NaN));
  }
  const left = await sql`
    select j.id, j.worker_id, j.attempt, j.claimed_at, j.run_at, w.seen_at,
      (select count(*) from queue_jobs as o where o.queue = 'bench' and o.worker_id = j.worker_id) as held
    from queue_jobs as j left join queue_workers as w on w.id = j.worker_id
    where j.queue = 'bench' and j.id = any(${ids}::int8[])`;
  throw new Error(`The jobs of the worker ${worker} have not begun elsewhere: ${JSON.stringify(left)}`);
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

function reportOf(rows: readonly Row[], kills: number): Report {
  return {
    tables: [
      {
        title: `recovery: from SIGKILL of one worker until its jobs run elsewhere, ${kills} kills each`,
        header: ['others that live', 'jobs', 'first job s', 'median s', 'longest s'],
        rows: rows.map(({ living, recoveredMs }) => {
          const all = recoveredMs.flat().sort((a, b) => a - b);
          return [
            figure(living),
            figure(all.length),
            figure((all[0] ?? Number.NaN) / 1_000, 2),
            figure((all[Math.floor(all.length / 2)] ?? Number.NaN) / 1_000, 2),
            figure((all.at(-1) ?? Number.NaN) / 1_000, 2),
          ];
        }),
      },
    ],
    charts: [],
    remarks: [
      `The others are in ${PROCESSES} processes, those of a process share a pool and a connection that listens; each victim is a process of its own, and those that are not yet killed live, too.`,
      SERVER_TEXT,
    ],
  };
}
