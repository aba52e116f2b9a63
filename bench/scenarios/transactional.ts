import { COUNTING } from '../harness/backends.ts';
import { chosen, inTurns, missed, withSites } from '../harness/bench.ts';
import { type Drained, drainFresh, medianOfDrains } from '../harness/drain-jobs.ts';
import { figure, times } from '../harness/ratios.ts';
import { print, type Report } from '../harness/report.ts';
import { SERVER_TEXT } from '../harness/server.ts';
import { SMALL, type System } from '../harness/system.ts';
import type { Scenario } from '../scenario.ts';
import { drizzleQueue } from '../systems/drizzle-queue/system.ts';
import { graphileHandling } from '../systems/graphile-worker/system.ts';
import { withOrders } from '../systems/orders.ts';
import { pgBossHandling, pgBossTransactional } from '../systems/pg-boss/system.ts';

/** How many handlers are in a transaction at once. Everybody has ten connections more: ours in the app's pool, the peers in their own. */
const AT_ONCE = 24;

type Kind = 'completing' | 'plain' | 'peer';

interface Form {
  readonly name: string;
  readonly kind: Kind;
  readonly system: System;
}

function formOf(kind: Kind, system: System): Form {
  return { name: system.name, kind, system: withOrders(system) };
}

function own(name: string, orders: 'plain' | 'completing', keepResult: boolean): Form {
  const options = { keepResult, orders, poolSize: AT_ONCE + 10, worker: { concurrency: AT_ONCE } };
  const setup = `concurrency ${AT_ONCE}, a pool of ${AT_ONCE + 10}, everything else by default; the storage parameters of docs/schema.md`;
  return formOf(orders, { ...drizzleQueue(name, options), setup });
}

const handling = { orderConnections: AT_ONCE };

const FORMS: readonly Form[] = [
  own('complete(tx), no results', 'completing', false),
  own('complete(tx), results kept', 'completing', true),
  own('ended by the worker, no results', 'plain', false),
  formOf('peer', graphileHandling('best', { concurrency: AT_ONCE, handling })),
  formOf('peer', pgBossHandling('best', { batchSize: 500, localConcurrency: 4 }, handling)),
  formOf('peer', pgBossTransactional('transactional', AT_ONCE)),
];

const LIMIT_MS = 15_000;
const AT_LEAST = 1.3;

interface Row extends Drained {
  readonly system: string;
  readonly kind: Kind;
}

/** Handlers that each write a row: in one transaction with the end of their job, where that is possible. */
export const transactional: Scenario = async (options) => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 1_000 : 15_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const forms = chosen(FORMS, options);
  const taken = await withSites(
    (sites) =>
      inTurns(
        'transactional',
        runs,
        forms,
        ({ name }) => name,
        ({ system }) =>
          drainFresh(sites, system, { jobs, payloadBytes: SMALL, limitMs: quick ? 3_000 : LIMIT_MS }),
      ),
    COUNTING,
  );
  const rows = taken.map(
    ({ of, values }): Row => ({ system: of.name, kind: of.kind, ...medianOfDrains(values) }),
  );
  const best = Math.max(
    ...rows.filter(({ kind }) => kind === 'peer').map(({ jobsPerSecond }) => jobsPerSecond),
  );
  const report = reportOf(rows, forms, best, jobs, runs);
  print(report);
  return {
    scenario: 'transactional',
    jobs,
    runs,
    rows,
    missed: missed(
      'transactional',
      rows
        .filter(({ kind }) => kind === 'completing')
        .map(({ system, jobsPerSecond }) => ({
          what: `${system} ÷ the best peer`,
          reached: jobsPerSecond / best,
          atLeast: AT_LEAST,
        })),
    ),
    report,
  };
};

function reportOf(
  rows: readonly Row[],
  forms: readonly Form[],
  best: number,
  jobs: number,
  runs: number,
): Report {
  return {
    tables: [
      {
        title: `transactional: ${figure(jobs)} jobs whose handlers each insert an order in a transaction, one worker process; medians of ${runs}`,
        header: [
          '',
          'jobs/s',
          '÷ best peer',
          'statements/job',
          'commits/job',
          'worker CPU µs/job',
          'jobs',
          'WAL B/job',
          'deadlocks',
        ],
        rows: rows.map((row) => [
          row.system,
          figure(row.jobsPerSecond),
          times(row.jobsPerSecond, best),
          figure(row.statementsPerJob, 2),
          figure(row.commitsPerJob, 2),
          figure(row.cpuUsPerJob, 1),
          figure(row.jobs),
          figure(row.walBytesPerJob),
          figure(row.deadlocks),
        ]),
      },
    ],
    charts: [
      {
        name: 'transactional',
        title: 'Jobs per second whose handlers insert an order each',
        kind: 'bars',
        x: 'jobs/s',
        y: '',
        points: rows.map(({ system, jobsPerSecond }) => ({ series: system, x: system, y: jobsPerSecond })),
      },
    ],
    remarks: [
      'With complete(tx), and with what pg-boss calls transactional, a job has ended if and only if its order is there. With the others a crash between the two transactions writes the order a second time.',
      'Orders are inserted through Drizzle on postgres.js; in the transaction of pg-boss by SQL, which is what that takes. Statements are those that the server counts: `begin` is one, but not the `commit` of postgres.js, which is prepared.',
      ...forms.map(({ name, system }) => `${name}: ${system.setup}.`),
      `Where fewer jobs stand in the table the system was stopped after ${LIMIT_MS / 1_000} s. The server counts statements meanwhile (pg_stat_statements).`,
      SERVER_TEXT,
    ],
  };
}
