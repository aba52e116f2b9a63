import type { Fanned } from '../../child/fan.ts';
import { figure, times } from '../../harness/ratios.ts';
import type { Report, Table } from '../../harness/report.ts';
import { SERVER_TEXT } from '../../harness/server.ts';
import { benchVersion } from '../../page/machine.ts';
import type { Cell } from './cells.ts';
import {
  dbosDirect,
  dbosDrizzle,
  dbosPolling,
  dbosPollingLess,
  dbosUnlimited,
  openWorkflowQueued,
  ownQueued,
  ownStarted,
  queuedOnNodePostgres,
  startedOnNodePostgres,
} from './forms.ts';
import type { FanForm, FanLoad } from './measure-fan.ts';
import type { Rate } from './measure-rate.ts';
import type { Replay, Waiting } from './measure-waiting.ts';

export interface RateRow extends Rate {
  readonly part: Cell['part'];
  readonly system: string;
  readonly steps: number;
  readonly inFlight: number;
}

export interface WaitingRow extends Waiting {
  readonly system: string;
}

export interface ClaimRow {
  readonly beside: string;
  readonly limit: number;
  readonly claimMs: number;
  readonly sweepMs: number;
}

export interface ReplayRow extends Replay {
  readonly system: string;
  readonly steps: number;
}

export interface FanRow extends Fanned, FanLoad {
  readonly system: string;
}

interface Measured {
  readonly rates: readonly RateRow[];
  readonly waiting: readonly WaitingRow[];
  readonly claims: readonly ClaimRow[];
  readonly replays: readonly ReplayRow[];
  readonly fans: readonly FanRow[];
}

const FORMS = [
  ownStarted,
  startedOnNodePostgres,
  ownQueued,
  queuedOnNodePostgres,
  dbosDirect,
  dbosPolling,
  dbosPollingLess,
  dbosUnlimited,
  dbosDrizzle,
  openWorkflowQueued,
];

export function reportOf(
  { rates, waiting, claims, replays, fans }: Measured,
  fanForms: readonly FanForm[],
  runs: number,
): Report {
  const of = (part: Cell['part']) => rates.filter((row) => row.part === part);
  return {
    tables: [
      stepTable('workflows: a step that does nothing', of('step'), runs),
      workflowTable(of('workflow'), runs),
      stepTable('workflows: a step that inserts an order', of('order'), runs),
      {
        title: 'workflows: many that wait, half for a signal and half until tomorrow; one run',
        header: ['', 'wait', 'came to wait/s', 'heap B each', 'signal to resumed, p50 ms', 'p99 ms'],
        rows: waiting.map((row) => [
          row.system,
          figure(row.waiting),
          figure(row.perSecond),
          figure(row.heapBytesEach),
          figure(row.p50Ms, 1),
          figure(row.p99Ms, 1),
        ]),
      },
      {
        title: `workflows: how long claims of plain jobs take beside drizzle-queue's; medians of ${runs}`,
        header: ['', 'claims', 'claim ms', '÷ alone', 'sweep ms', '÷ alone'],
        rows: claims.map((row) => {
          const alone = claims.find(({ beside, limit }) => beside === 'alone' && limit === row.limit);
          return [
            row.beside,
            figure(row.limit),
            figure(row.claimMs, 2),
            times(row.claimMs, alone?.claimMs ?? Number.NaN),
            figure(row.sweepMs, 2),
            times(row.sweepMs, alone?.sweepMs ?? Number.NaN),
          ];
        }),
      },
      {
        title: `workflows: replay of recorded steps; medians of ${runs}`,
        header: ['', 'steps', 'in the function, ms', 'from the commit that resumes it, ms'],
        rows: replays.map((row) => [
          row.system,
          figure(row.steps),
          figure(row.inFunctionMs, 1),
          figure(row.inAllMs, 1),
        ]),
      },
      {
        title: `workflows: parents that run after their children, jobs that do nothing; medians of ${runs}`,
        header: ['', 'parents', 'children each', 'all put in, s', 'all parents have run, s', 'jobs/s'],
        rows: fans.map((row) => [
          row.system,
          figure(row.parents),
          figure(row.children),
          figure(row.putMs / 1_000, 2),
          figure(row.allMs / 1_000, 2),
          figure((row.parents * (row.children + 1) * 1_000) / row.allMs),
        ]),
      },
    ],
    charts: [
      {
        name: 'workflows',
        title: 'Workflows of five steps per second, 50 at once',
        kind: 'bars',
        x: 'workflows/s',
        y: '',
        points: of('workflow')
          .filter(({ inFlight }) => inFlight === 50)
          .map(({ system, perSecond }) => ({ series: system, x: system, y: perSecond })),
      },
    ],
    remarks: [
      `DBOS Transact ${benchVersion('dbos-sdk-5')}, and ${benchVersion('@dbos-inc/dbos-sdk')} with its ` +
        `drizzle-datasource ${benchVersion('@dbos-inc/drizzle-datasource')}; ` +
        `OpenWorkflow ${benchVersion('openworkflow')}.`,
      'Each run has a fresh database. The start and the end of the workflows are part of the ' +
        'figures of their steps. No more workflows are started after 4 s. What is queued is counted from ' +
        'the first line of the first workflow, without a warm-up, for 12 s at most.',
      'OpenWorkflow inserts an order in a transaction of its own, before the step is recorded: ' +
        'after a crash in between there are two orders. With drizzle-queue and the datasource of DBOS ' +
        'both commit together.',
      'The heap is that of the process that works, after a garbage collection, by those that came ' +
        'to wait after the first tenth. Signals are sent from another process, 20 a second. DBOS asks ' +
        'once an hour beside its notifications; OpenWorkflow has none and polls.',
      'A replay is caused by a signal; with DBOS, where a signal resumes a process that waits, by ' +
        'forkWorkflow after the last step. OpenWorkflow reads the recorded steps before it calls the ' +
        'function.',
      ...[...FORMS, ...fanForms].map(({ name, setup }) => `${name}: ${setup}.`),
      'The server counts statements meanwhile (pg_stat_statements): `begin` is one, but not the ' +
        '`commit` of postgres.js, which is prepared.',
      SERVER_TEXT,
    ],
  };
}

function stepTable(title: string, rows: readonly RateRow[], runs: number): Table {
  return {
    title: `${title}; medians of ${runs}`,
    header: [
      '',
      'workflows at once',
      'steps each',
      'steps/s',
      '÷ drizzle-queue',
      'µs/step',
      'statements/step',
      'WAL B/step',
      'CPU µs/step',
    ],
    rows: rows.map((row) => {
      const own = rows.find(
        ({ inFlight, system }) => inFlight === row.inFlight && system === ownStarted.name,
      );
      const perSecond = row.perSecond * row.steps;
      return [
        row.system,
        figure(row.inFlight),
        figure(row.steps),
        figure(perSecond),
        times(row.perSecond, own?.perSecond ?? Number.NaN),
        figure(1e6 / perSecond),
        figure(row.statementsPerStep, 2),
        figure(row.walBytesPerStep),
        figure(row.cpuUsPerStep),
      ];
    }),
  };
}

function workflowTable(rows: readonly RateRow[], runs: number): Table {
  return {
    title: `workflows: ${rows[0]?.steps ?? 0} steps each that do nothing; medians of ${runs}`,
    header: [
      '',
      'at once',
      'workflows/s',
      '÷ best of DBOS',
      'p50 ms',
      'statements each',
      'WAL B each',
      'CPU µs each',
      'done',
    ],
    rows: rows.map((row) => {
      const peers = rows.filter(
        ({ inFlight, system }) => inFlight === row.inFlight && system.startsWith('DBOS'),
      );
      return [
        row.system,
        figure(row.inFlight),
        figure(row.perSecond),
        times(row.perSecond, Math.max(...peers.map(({ perSecond }) => perSecond))),
        figure(row.p50Ms, 1),
        figure(row.statementsPerStep * row.steps, 1),
        figure(row.walBytesPerStep * row.steps),
        figure(row.cpuUsPerStep * row.steps),
        figure(row.workflows),
      ];
    }),
  };
}
