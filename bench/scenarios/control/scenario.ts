import { chosen, inTurns, missed, withSites } from '../../harness/bench.ts';
import { type Drained, drainFresh, medianOfDrains } from '../../harness/drain-jobs.ts';
import { figure, times } from '../../harness/ratios.ts';
import { print, type Report } from '../../harness/report.ts';
import { SERVER_TEXT } from '../../harness/server.ts';
import type { Sites } from '../../harness/site.ts';
import { SMALL } from '../../harness/system.ts';
import type { Scenario, ScenarioResult } from '../../scenario.ts';
import { bullmqLimited, bullmqOnPostgres, bullmqRated } from '../../systems/bullmq/system.ts';
import { graphileBest, graphileQueues } from '../../systems/graphile-worker/system.ts';
import { pgBossBest, pgBossGroups, pgBossInOrder } from '../../systems/pg-boss/system.ts';
import { drainOthers } from './beside-hot.ts';
import { besideHot, hotKey, KEYS, manyKeys, PER_KEY, plain, VARIANTS, type Variant } from './variants.ts';

const LIMIT_MS = 15_000;
const QUICK_LIMIT_MS = 3_000;

const keyOf = (n: number) => String(n % KEYS);
/** Each over what it does without the feature. */
const PEERS: readonly Variant[] = [
  { name: 'graphile-worker, plain', system: graphileBest },
  {
    name: 'graphile-worker, one named queue',
    system: graphileQueues('one named queue', `'hot'`, 1),
    over: 'graphile-worker, plain',
  },
  {
    name: 'graphile-worker, 1,000 named queues',
    system: graphileQueues('named queues', `(i % ${KEYS})::text`, 24),
    over: 'graphile-worker, plain',
  },
  { name: 'pg-boss, plain', system: pgBossBest },
  {
    name: 'pg-boss, one key, in order',
    system: pgBossInOrder('one key', () => 'hot', true),
    over: 'pg-boss, plain',
  },
  {
    name: 'pg-boss, 1,000 keys, in order',
    system: pgBossInOrder('1,000 keys', keyOf, false),
    over: 'pg-boss, plain',
  },
  {
    name: 'pg-boss, 2 at once per group, 1,000 groups',
    system: pgBossGroups('limit of 2', keyOf),
    over: 'pg-boss, plain',
  },
  { name: 'BullMQ on Postgres, plain', system: bullmqOnPostgres },
  {
    name: 'BullMQ on Postgres, 24 at once of the queue',
    system: bullmqLimited,
    over: 'BullMQ on Postgres, plain',
  },
  {
    name: 'BullMQ on Postgres, a rate that is not reached',
    system: bullmqRated,
    over: 'BullMQ on Postgres, plain',
  },
];

interface Row extends Drained {
  readonly name: string;
  readonly over: string;
}

export interface ControlResult extends ScenarioResult {
  readonly jobs: number;
  readonly runs: number;
  readonly rows: readonly Row[];
}

/** What limits, shares and orders cost: no-op jobs, one worker process. */
export const control: Scenario = async (options): Promise<ControlResult> => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 2_000 : 100_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const others = quick ? KEYS : KEYS * PER_KEY;
  const limitMs = quick ? QUICK_LIMIT_MS : LIMIT_MS;
  const taken = await withSites((sites) =>
    inTurns(
      'control',
      runs,
      chosen([...VARIANTS, ...PEERS], options),
      ({ name }) => name,
      (variant) => measure(sites, variant, { jobs, others, limitMs }),
    ),
  );
  const rows = taken.map(
    ({ of, values }): Row => ({ name: of.name, over: of.over ?? plain.name, ...medianOfDrains(values) }),
  );
  const report = reportOf(rows, jobs, runs);
  print(report);
  const reached = ({ name }: Variant) => ratioOf(rows, name);
  return {
    scenario: 'control',
    jobs,
    runs,
    rows,
    missed: missed('control', [
      { what: `${hotKey.name} ÷ plain`, reached: reached(hotKey), atLeast: 0.2 },
      { what: `${manyKeys.name} ÷ plain`, reached: reached(manyKeys), atLeast: 0.3 },
      { what: 'other keys beside a hot one ÷ without it', reached: reached(besideHot), atLeast: 0.9 },
    ]),
    report,
  };
};

async function measure(
  sites: Sites,
  { system, counted }: Variant,
  { jobs, others, limitMs }: { readonly jobs: number; readonly others: number; readonly limitMs: number },
): Promise<Drained> {
  if (counted === undefined) return await drainFresh(sites, system, { jobs, payloadBytes: SMALL, limitMs });
  return await drainOthers(sites, system, { others, beside: counted === 'alone' ? 0 : jobs, limitMs });
}

function ratioOf(rows: readonly Row[], name: string): number {
  const row = rows.find((row) => row.name === name);
  const over = rows.find((other) => other.name === row?.over);
  return (row?.jobsPerSecond ?? Number.NaN) / (over?.jobsPerSecond ?? Number.NaN);
}

function reportOf(rows: readonly Row[], jobs: number, runs: number): Report {
  return {
    tables: [
      {
        title: `control: ${figure(jobs)} no-op jobs, one worker process; medians of ${runs}`,
        header: ['', 'jobs/s', '÷ plain', '÷ its own', 'WAL B/job', 'worker CPU µs/job', 'jobs'],
        rows: rows.map((row) => [
          row.name,
          figure(row.jobsPerSecond),
          times(row.jobsPerSecond, rows.find(({ name }) => name === plain.name)?.jobsPerSecond ?? Number.NaN),
          times(ratioOf(rows, row.name), 1),
          figure(row.walBytesPerJob),
          figure(row.cpuUsPerJob, 1),
          figure(row.jobs),
        ]),
      },
    ],
    charts: [
      {
        name: 'control',
        title: 'No-op jobs per second with limits, shares and orders, one worker process',
        kind: 'bars',
        x: 'jobs/s',
        y: '',
        points: rows.map(({ name, jobsPerSecond }) => ({ series: name, x: name, y: jobsPerSecond })),
      },
    ],
    remarks: [
      'In order: serial "end". 10 at once are as many as the worker has slots. A rate that is not reached: 1,000,000 jobs a second. Of the 1,000 keys × 20 only their own jobs are counted, by the time at which they begin.',
      'Where fewer jobs stand in the table the system was given fewer, or was stopped.',
      ...PEERS.filter(({ over }) => over !== undefined).map(
        ({ name, system }) => `${name}: ${system.setup}.`,
      ),
      SERVER_TEXT,
    ],
  };
}
