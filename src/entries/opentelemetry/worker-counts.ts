import type { Attributes, Meter } from '@opentelemetry/api';
import type { WorkerEvents } from '../../index.ts';
import { DESTINATION, ERROR_TYPE, KIND, OPERATION, OUTCOME, SYSTEM } from './attributes.ts';
import { OPERATION_BOUNDARIES, operationDuration, operationOf } from './sent-metrics.ts';
import { errorType } from './span-error.ts';
import { waitMsOf } from './trace-attempt.ts';

/** Events of which metrics are made. Not `error`: without another listener a worker prints those. */
type CountedEvent =
  | 'claimed'
  | 'began'
  | 'completed'
  | 'failed'
  | 'discarded'
  | 'snoozed'
  | 'waiting'
  | 'cancelled'
  | 'interrupted'
  | 'lost'
  | 'gone';

export type Listeners = { readonly [K in CountedEvent]: (...told: WorkerEvents[K]) => void };

type Job = WorkerEvents['began'][0]['job'];
type Outcome = 'completed' | 'retried' | 'discarded' | 'cancelled' | 'snoozed' | 'interrupted' | 'lost';

/** By the conventions up to ten seconds; jobs take longer. */
const JOB_BOUNDARIES = [...OPERATION_BOUNDARIES, 30, 60, 300, 900, 3_600];

/** Listeners that count what a worker does. */
export function workerCounts(meter: Meter): Listeners {
  const consumed = meter.createCounter('messaging.client.consumed.messages', {
    unit: '{message}',
    description: 'Attempts that started',
  });
  const operation = operationDuration(meter);
  const process = meter.createHistogram('messaging.process.duration', {
    unit: 's',
    description: 'How long attempts took: the checks of payload and output, and the handler',
    advice: { explicitBucketBoundaries: JOB_BOUNDARIES },
  });
  const wait = meter.createHistogram('drizzle_queue.job.wait', {
    unit: 's',
    description: 'How long jobs were due before they were claimed',
    advice: { explicitBucketBoundaries: JOB_BOUNDARIES },
  });
  const attempts = meter.createCounter('drizzle_queue.job.attempts', {
    unit: '{attempt}',
    description: 'Attempts that ended, by outcome',
  });
  const gone = meter.createCounter('drizzle_queue.workers.gone', {
    unit: '{worker}',
    description: 'Dead workers that this worker has declared gone',
  });
  // Created with a value, so that the first one that dies is an increase.
  gone.add(0, SYSTEM);
  /** When each attempt has begun, and whether its time was noted. */
  const begun = new WeakMap<Job, { readonly atMs: number; noted: boolean }>();

  return {
    claimed: ({ queue, durationMs }) =>
      operation.record(durationMs / 1_000, { ...SYSTEM, ...operationOf('receive'), [DESTINATION]: queue }),
    began: ({ job }) => {
      begun.set(job, { atMs: performance.now(), noted: false });
      consumed.add(1, { ...of(job), [OPERATION]: 'process' });
      wait.record(waitMsOf(job) / 1_000, of(job));
    },
    completed: ({ job, durationMs }) => end(job, 'completed', durationMs),
    failed: ({ job, error, retryInMs, durationMs }) => {
      const type = errorType(error);
      // Of one that is not retried another event says what became of it.
      if (retryInMs !== undefined) end(job, 'retried', durationMs, type);
      else noteDuration(job, durationMs, type);
    },
    // Also a job whose workers have all died, which has begun nowhere this time.
    discarded: ({ job }) => count(job, 'discarded'),
    snoozed: ({ job, durationMs }) => end(job, 'snoozed', durationMs),
    waiting: ({ job, durationMs }) => end(job, 'snoozed', durationMs),
    cancelled: ({ job, durationMs }) => {
      // A job may be cancelled that never began.
      if (begun.has(job)) end(job, 'cancelled', durationMs);
    },
    interrupted: ({ job, began }) => {
      if (began) count(job, 'interrupted');
    },
    lost: ({ job }) => {
      if (begun.has(job)) count(job, 'lost');
    },
    gone: () => gone.add(1, SYSTEM),
  };

  function end(job: Job, outcome: Outcome, durationMs: number, type?: string): void {
    noteDuration(job, durationMs, type);
    count(job, outcome);
  }

  function count(job: Job, outcome: Outcome): void {
    attempts.add(1, { ...of(job), [OUTCOME]: outcome });
  }

  /** The handler's time, and the time until the database knew. */
  function noteDuration(job: Job, durationMs: number, type?: string): void {
    const attempt = begun.get(job);
    // An attempt that has failed and was then cancelled is reported twice.
    if (attempt === undefined || attempt.noted) return;
    attempt.noted = true;
    const all: Attributes = {
      ...of(job),
      [OPERATION]: 'process',
      ...(type !== undefined && { [ERROR_TYPE]: type }),
    };
    process.record(durationMs / 1_000, all);
    const settleMs = Math.max(0, performance.now() - attempt.atMs - durationMs);
    operation.record(settleMs / 1_000, { ...SYSTEM, ...operationOf('settle'), [DESTINATION]: job.queue });
  }
}

function of({ kind, queue }: Job): Attributes {
  return { ...SYSTEM, [DESTINATION]: queue, [KIND]: kind };
}
