import type { BatchObservableResult, Meter } from '@opentelemetry/api';
import { DESTINATION, KIND, STATE, SYSTEM, VITAL } from './attributes.ts';

/** The part of what `queue.stats` returns that becomes gauges. */
export interface Figures {
  readonly queues: readonly {
    readonly queue: string;
    readonly due: number;
    readonly running: number;
    readonly scheduled: number;
    readonly waiting?: number | undefined;
    /** `undefined` when none is due, or the figure is unknown. */
    readonly oldestDueMs?: number | undefined;
    /** `'unknown'` when the jobs could not be counted; the counts are then 0. */
    readonly precision?: string | undefined;
    /** How many registered workers serve the queue. */
    readonly workers?: number | undefined;
  }[];
}

/** The part of what `queue.vitals` returns that becomes gauges. */
export interface Vitals {
  readonly vitals: readonly {
    readonly code: string;
    readonly severity: 'ok' | 'warning' | 'error' | 'unknown';
    readonly queue?: string | undefined;
    readonly kind?: string | undefined;
    readonly value?: number | undefined;
  }[];
}

/** What `queue.workflows.stats` returns, as far as it becomes gauges. */
export interface WorkflowFigures {
  readonly open: number;
  /** `undefined` when none is open. */
  readonly oldestOpenMs?: number | undefined;
  readonly waiting: number;
}

const SEVERITIES = { ok: 0, warning: 1, error: 2, unknown: undefined } as const;

export type FigureGauges = ReturnType<typeof figureGauges>;
export type VitalGauges = ReturnType<typeof vitalGauges>;

export type WorkflowGauges = ReturnType<typeof workflowGauges>;

export function figureGauges(meter: Meter) {
  return {
    jobs: meter.createObservableGauge('drizzle_queue.jobs', {
      unit: '{job}',
      description: 'Live jobs, by state',
    }),
    oldestDue: meter.createObservableGauge('drizzle_queue.oldest_due', {
      unit: 's',
      description: 'How long the oldest due job has been due',
    }),
    workers: meter.createObservableGauge('drizzle_queue.workers', {
      unit: '{worker}',
      description: 'Registered workers that serve the queue',
    }),
  };
}

export function vitalGauges(meter: Meter) {
  return {
    vital: meter.createObservableGauge('drizzle_queue.vital', {
      unit: '1',
      description: 'What queue.vitals says: 0 is ok, 1 a warning, 2 an error',
    }),
    deadRows: meter.createObservableGauge('drizzle_queue.dead_rows', {
      unit: '{row}',
      description: 'Dead rows of queue_jobs that vacuum has not removed',
    }),
    oldestSnapshot: meter.createObservableGauge('drizzle_queue.oldest_snapshot', {
      unit: 's',
      description: 'How long something has kept the server from removing dead rows',
    }),
  };
}

export function workflowGauges(meter: Meter) {
  return {
    flows: meter.createObservableGauge('drizzle_queue.flows', {
      unit: '{flow}',
      description: 'Flows and batches that are open',
    }),
    oldestFlow: meter.createObservableGauge('drizzle_queue.oldest_flow', {
      unit: 's',
      description: 'How long ago the oldest open flow or batch was enqueued',
    }),
    waitingJobs: meter.createObservableGauge('drizzle_queue.waiting_jobs', {
      unit: '{job}',
      description: 'Jobs that wait for other jobs',
    }),
  };
}

export function observeFigures(
  result: BatchObservableResult,
  gauges: FigureGauges,
  { queues }: Figures,
): void {
  for (const { queue, due, running, scheduled, waiting, oldestDueMs, precision, workers } of queues) {
    const attributes = { ...SYSTEM, [DESTINATION]: queue };
    const isCounted = precision !== 'unknown';
    for (const [state, jobs] of Object.entries({ due, running, scheduled, waiting })) {
      if (isCounted && jobs !== undefined)
        result.observe(gauges.jobs, jobs, { ...attributes, [STATE]: state });
    }
    // Without due jobs nothing is late. Only a look that failed leaves the age unknown.
    const oldestMs = isCounted && due === 0 ? 0 : oldestDueMs;
    if (oldestMs !== undefined) result.observe(gauges.oldestDue, oldestMs / 1_000, attributes);
    if (workers !== undefined) result.observe(gauges.workers, workers, attributes);
  }
}

export function observeVitals(result: BatchObservableResult, gauges: VitalGauges, { vitals }: Vitals): void {
  for (const { code, severity, queue, kind, value } of vitals) {
    const attributes = {
      ...SYSTEM,
      ...(queue !== undefined && { [DESTINATION]: queue }),
      ...(kind !== undefined && { [KIND]: kind }),
    };
    const rank = SEVERITIES[severity];
    if (rank !== undefined) result.observe(gauges.vital, rank, { ...attributes, [VITAL]: code });
    if (value === undefined) continue;
    if (code === 'dead-rows') result.observe(gauges.deadRows, value, attributes);
    if (code === 'oldest-snapshot') result.observe(gauges.oldestSnapshot, value / 1_000, attributes);
  }
}

export function observeWorkflows(
  result: BatchObservableResult,
  gauges: WorkflowGauges,
  { open, oldestOpenMs = 0, waiting }: WorkflowFigures,
): void {
  result.observe(gauges.flows, open, SYSTEM);
  result.observe(gauges.oldestFlow, oldestOpenMs / 1_000, SYSTEM);
  result.observe(gauges.waitingJobs, waiting, SYSTEM);
}
