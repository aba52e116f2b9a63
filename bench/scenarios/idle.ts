import { type Backends, COUNTING, readBackends } from '../harness/backends.ts';
import { chosen, missed, withSites } from '../harness/bench.ts';
import { figure } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { Site, type Sites } from '../harness/site.ts';
import type { System } from '../harness/system.ts';
import { Working } from '../harness/working.ts';
import type { Scenario } from '../scenario.ts';
import { bullmqOnPostgres } from '../systems/bullmq/system.ts';
import { drizzleQueue } from '../systems/drizzle-queue/system.ts';
import { graphileBest } from '../systems/graphile-worker/system.ts';
import { pgBossBest, pgBossDefaults, pgBossListening } from '../systems/pg-boss/system.ts';

const LISTENING = 'drizzle-queue, LISTEN';
/** The size of the app's pool; every connection beyond is the worker's own. */
const POOL_SIZE = 3;

const SYSTEMS: readonly System[] = [
  drizzleQueue('LISTEN', { poolSize: POOL_SIZE }),
  drizzleQueue('polling', { poolSize: POOL_SIZE, worker: { listen: false } }),
  graphileBest,
  pgBossDefaults,
  pgBossBest,
  pgBossListening,
  bullmqOnPostgres,
];

interface Row {
  readonly system: string;
  readonly queues: number;
  readonly queriesPerSecond: number;
  readonly connections: number;
  /** Processor time in thousandths of one core: of the worker's process, and of its connections' processes on the server. */
  readonly workerMilliCores: number;
  readonly serverMilliCores: number;
}

/** What a worker costs that has nothing to do. */
export const idle: Scenario = async (options) => {
  const { quick } = options;
  const settleMs = quick ? 1_500 : 8_000;
  const measuredMs = quick ? 2_000 : 15_000;
  const systems = chosen(SYSTEMS, options);
  const rows = await withSites(async (sites) => {
    const rows: Row[] = [];
    for (const queues of quick ? [1, 10] : [1, 10, 50]) {
      console.error(`idle: ${queues} queues …`);
      rows.push(...(await idleTogether(sites, systems, queues, settleMs, measuredMs)));
    }
    return rows;
  }, COUNTING);
  const report = reportOf(rows, measuredMs);
  print(report);
  return {
    scenario: 'idle',
    measuredMs,
    rows,
    missed: missed(
      'idle',
      rows
        .filter(({ system }) => system === LISTENING)
        .flatMap(({ queues, queriesPerSecond, connections }) => [
          { what: `queries/s with ${queues} queues`, reached: queriesPerSecond, atMost: 2 },
          {
            what: `connections beyond the app's pool with ${queues} queues`,
            reached: connections - POOL_SIZE,
            atMost: 2,
          },
        ]),
    ),
    report,
  };
};

/** All systems at the same time, each in a database and a process of its own: idle ones are in nobody's way. */
async function idleTogether(
  sites: Sites,
  systems: readonly System[],
  queues: number,
  settleMs: number,
  measuredMs: number,
): Promise<Row[]> {
  const opened: { site: Site; working: Working }[] = [];
  try {
    for (const system of systems) {
      const site = await Site.open(sites, { ...system, options: { ...(system.options as object), queues } });
      opened.push({ site, working: await Working.start(site, { sampleEvery: 1 }) });
    }
    await pause(settleMs);
    const before = await readAll(opened);
    const startMs = performance.now();
    await pause(measuredMs);
    const seconds = (performance.now() - startMs) / 1_000;
    const after = await readAll(opened);
    return opened.map(({ site }, index) => {
      const [start, end] = [before[index], after[index]];
      if (start === undefined || end === undefined) throw new TypeError('Each system is read twice');
      return {
        system: site.system.name,
        queues,
        queriesPerSecond: (end.server.statements - start.server.statements) / seconds,
        connections: end.server.connections,
        workerMilliCores: (end.cpuMs - start.cpuMs) / seconds,
        serverMilliCores: (end.server.cpuMs - start.server.cpuMs) / seconds,
      };
    });
  } finally {
    for (const { site, working } of opened) {
      await working.end();
      await site.close();
    }
  }
}

async function readAll(
  opened: readonly { site: Site; working: Working }[],
): Promise<{ cpuMs: number; server: Backends }[]> {
  return await Promise.all(
    opened.map(async ({ site, working }) => ({
      cpuMs: (await working.handled())[0]?.cpuMs ?? Number.NaN,
      server: await readBackends(site.sql),
    })),
  );
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

function reportOf(rows: readonly Row[], measuredMs: number): Report {
  return {
    tables: [
      {
        title: `idle: a worker process with nothing to do, over ${measuredMs / 1_000} s`,
        header: ['', 'queues', 'queries/s', 'connections', 'worker CPU ‰', 'server CPU ‰'],
        rows: rows.map((row) => [
          row.system,
          figure(row.queues),
          figure(row.queriesPerSecond, 1),
          figure(row.connections),
          figure(row.workerMilliCores, 1),
          figure(row.serverMilliCores, 1),
        ]),
      },
    ],
    charts: [
      {
        name: 'idle',
        title: 'Queries per second of an idle worker process, by queues',
        kind: 'lines',
        x: 'queues',
        y: 'queries/s',
        points: rows.map(({ system, queues, queriesPerSecond }) => ({
          series: system,
          x: queues,
          y: queriesPerSecond,
        })),
      },
    ],
    remarks: [
      `Queries are statements, as pg_stat_statements counts them. Of the connections of drizzle-queue up to ${POOL_SIZE} are the app's own pool, which is that large here; the peers have pools of their own.`,
      'CPU in thousandths of one core: of the worker process, and of the connections on the server. graphile-worker has tasks where others have queues. BullMQ has a worker per queue.',
      SERVER_TEXT,
    ],
  };
}
