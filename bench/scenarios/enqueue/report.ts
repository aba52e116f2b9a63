import { figure, times } from '../../harness/ratios.ts';
import type { Report } from '../../harness/report.ts';
import { SERVER_TEXT } from '../../harness/server.ts';

export interface FormRow {
  readonly form: string;
  readonly connections: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly walBytesPerTransaction: number;
  readonly deadlocks: number;
}

export interface BulkRow {
  readonly bulk: string;
  readonly against: string;
  readonly rowsPerSecond: number;
}

export interface SingleRow {
  readonly form: 'bare' | 'enqueue';
  readonly driver: string;
  readonly cpuMicros: number;
  readonly micros: number;
}

const WITHOUT = 'drizzle-queue, wakeUps: false';

export function reportOf(
  forms: readonly FormRow[],
  bulks: readonly BulkRow[],
  singles: readonly SingleRow[],
  runs: number,
): Report {
  const without = (connections: number) =>
    forms.find((row) => row.form === WITHOUT && row.connections === connections)?.perSecond ?? Number.NaN;
  return {
    tables: [
      {
        title: `enqueue: transactions that insert an order and enqueue a job; medians of ${runs}`,
        header: [
          '',
          'connections',
          'transactions/s',
          '÷ without wake-ups',
          'p50 ms',
          'p99 ms',
          'WAL B',
          'deadlocks',
        ],
        rows: [
          ...forms.map((row) => [
            row.form,
            figure(row.connections),
            figure(row.perSecond),
            times(row.perSecond, without(row.connections)),
            figure(row.p50Ms, 2),
            figure(row.p99Ms, 2),
            figure(row.walBytesPerTransaction),
            figure(row.deadlocks),
          ]),
          ['BullMQ', 'takes no transaction', ...Array.from({ length: 6 }, () => '–')],
        ],
      },
      {
        title: `enqueue: many jobs at once, one connection; medians of ${runs}`,
        header: ['', 'jobs/s', '÷ bare'],
        rows: bulks.map(({ bulk, against, rowsPerSecond }) => [
          bulk,
          figure(rowsPerSecond),
          times(rowsPerSecond, bulks.find((row) => row.bulk === against)?.rowsPerSecond ?? Number.NaN),
        ]),
      },
      {
        title: `enqueue: one job at a time, one connection; medians of ${runs}`,
        header: ['', 'driver', "the process's CPU, µs", '÷ bare', 'µs', '÷ bare'],
        rows: singles.map(({ form, driver, cpuMicros, micros }) => {
          const bare = singles.find((row) => row.form === 'bare' && row.driver === driver);
          return [
            form === 'bare' ? 'an insert of the same columns by Drizzle' : 'enqueue',
            driver,
            figure(cpuMicros),
            times(cpuMicros, bare?.cpuMicros ?? Number.NaN),
            figure(micros),
            times(micros, bare?.micros ?? Number.NaN),
          ];
        }),
      },
    ],
    charts: [
      {
        name: 'enqueue',
        title: 'Transactions per second: an order and its job',
        kind: 'lines',
        x: 'connections',
        y: 'transactions/s',
        points: forms
          .filter(({ form }) => !form.includes('at work'))
          .map(({ form, connections, perSecond }) => ({ series: form, x: connections, y: perSecond })),
      },
    ],
    remarks: [
      'All transactions go through Drizzle on postgres.js. A process of workers listens meanwhile, for other jobs of the same tables; "at work": for these.',
      'The bare INSERT … SELECT sets what enqueueMany sets, from what it sends, returns the ids, and goes through Drizzle as well, as an app would write it in its transaction; it checks and wakes nothing. Only a statement beside Drizzle can be prepared.',
      'BullMQ cannot take part in a transaction of the app. graphile-worker has only its SQL function for it.',
      SERVER_TEXT,
    ],
  };
}
