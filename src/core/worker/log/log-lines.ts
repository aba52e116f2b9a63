import { describeThrown } from '../../job/describe-error.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { WorkerEvents } from '../base/events.ts';
import type { LogLevel } from './logger.ts';

/** One line of a log: whole as a sentence, and its facts as fields. */
export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The events of which a line can be made alone; `started`, `listening` and `polling` go together. */
export type LoggedEvent = Exclude<
  keyof WorkerEvents,
  'started' | 'listening' | 'polling' | 'claimed' | 'began' | 'idle'
>;

type Lines = { readonly [K in LoggedEvent]: (...told: WorkerEvents[K]) => LogLine | undefined };

/** More queues than this are counted, not named. */
const MAX_QUEUES_NAMED = 8;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-/;

/**
 * What is logged of each event. Never a payload, an output, or the parameters of a statement: of an error its
 * class, message and stack alone, since its other properties may hold rows.
 */
export const LINES: Lines = {
  completed: ({ job, durationMs }) =>
    line('debug', `${named(job)} completed after ${ms(durationMs)}`, { ...ofJob(job), durationMs }),
  failed: ({ job, error, retryInMs, durationMs }) => {
    // Otherwise another event says what became of the job.
    if (retryInMs === undefined) return undefined;
    const failed = `${named(job)} failed at ${attemptOf(job)}, and will be retried in ${ms(retryInMs)}`;
    return line('warn', `${failed}: ${why(error)}`, {
      ...ofJob(job),
      durationMs,
      retryInMs,
      ...ofError(error),
    });
  },
  discarded: ({ job, error }) =>
    line('error', `${named(job)} was discarded at ${attemptOf(job)}: ${why(error)}`, {
      ...ofJob(job),
      ...ofError(error),
    }),
  snoozed: ({ job, delayMs, durationMs }) =>
    line('debug', `${named(job)} was snoozed for ${ms(delayMs)}`, { ...ofJob(job), durationMs, delayMs }),
  waiting: ({ job, delayMs, durationMs }) =>
    line('debug', `${named(job)} waits${delayMs === null ? '' : `, for ${ms(delayMs)} at most`}`, {
      ...ofJob(job),
      durationMs,
      ...(delayMs !== null && { delayMs }),
    }),
  cancelled: ({ job, reason, durationMs }) =>
    line('info', `${named(job)} was cancelled: ${reason}`, { ...ofJob(job), durationMs, reason }),
  // What was only claimed ahead is of no interest.
  interrupted: ({ job, began }) =>
    began ? line('info', `${named(job)} was interrupted, and is due again`, ofJob(job)) : undefined,
  lost: ({ job }) => line('warn', `${named(job)} was lost: another worker may have it`, ofJob(job)),
  fired: ({ schedule, ticks, ids }) =>
    line('debug', `schedule ${schedule} fired`, { schedule, ticks: ticks.length, jobIds: ids }),
  gone: ({ workerId, name }) =>
    line('warn', `worker ${workerId} (${name}) is gone; its jobs are due again`, {
      goneWorkerId: workerId,
      goneWorker: name,
    }),
  paused: ({ queue }) => line('info', `queue ${queue} is paused`, { queue }),
  resumed: ({ queue }) => line('info', `queue ${queue} is resumed`, { queue }),
  error: ({ error, during }) =>
    line('error', `worker error (${during}): ${why(error)}`, { during, ...ofError(error) }),
  stopping: ({ running, timeoutMs }) => {
    const handlers = running === 1 ? '1 handler' : `${running} handlers`;
    const waits = `waiting up to ${ms(timeoutMs)} for ${handlers} to end`;
    return line('info', running === 0 ? 'stopping' : `stopping: ${waits}`, { running, timeoutMs });
  },
  stopped: () => line('info', 'the worker stopped', {}),
};

/** @param listening whether notifications arrive */
export function startedLine(started: WorkerEvents['started'][0], listening: boolean): LogLine {
  const { workerId, name, concurrency } = started;
  const queues = Object.entries(concurrency);
  const served = queues.slice(0, MAX_QUEUES_NAMED).map(([queue, slots]) => `${queue} (${slots})`);
  if (queues.length > served.length) served.push(`${queues.length - served.length} more queues`);
  const how = listening ? 'listening' : 'polling';
  return line('info', `worker ${workerId} (${name}) started, ${how}: ${served.join(', ')}`, {
    worker: name,
    // Thousands of them would be a line of many kilobytes.
    ...(queues.length === served.length ? { concurrency } : { queues: queues.length }),
    listening,
  });
}

export function listeningLine(): LogLine {
  return line('info', 'notifications arrive again; listening', { listening: true });
}

export function pollingLine(error: unknown): LogLine {
  return line('warn', `notifications do not arrive; polling: ${why(error)}`, {
    listening: false,
    ...ofError(error),
  });
}

function line(level: LogLevel, message: string, fields: LogLine['fields']): LogLine {
  return { level, message, fields };
}

function ofJob(job: ClaimedJob): LogLine['fields'] {
  const traceId = traceIdOf(job.metadata);
  return {
    jobId: job.id,
    kind: job.kind,
    queue: job.queue,
    attempt: job.attempt,
    waitMs: Math.max(0, job.claimedAt.getTime() - job.runAt.getTime()),
    ...(traceId !== undefined && { traceId }),
  };
}

/** The trace that the job was enqueued in, where `drizzle-queue/opentelemetry` or an app has noted it. */
function traceIdOf({ traceparent }: Readonly<Record<string, unknown>>): string | undefined {
  return typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent)?.[1] : undefined;
}

/** The shape that pino gives an Error, with nothing of its own properties. */
function ofError(error: unknown): LogLine['fields'] {
  const { name, message, stack } = describeThrown(error);
  return { err: { type: name, message, ...(stack !== undefined && { stack }) } };
}

function why(error: unknown): string {
  const { name, message } = describeThrown(error);
  return `${name}: ${message}`;
}

function named({ id, kind }: ClaimedJob): string {
  return `job ${id} (${kind})`;
}

function attemptOf({ attempt, maxAttempts }: ClaimedJob): string {
  return `attempt ${attempt} of ${maxAttempts}`;
}

/** As a person says it: `35 ms`, `2.5 s`, `3 min`, `4 h`, `2 days`. */
function ms(duration: number): string {
  const rounded = (value: number) => String(Math.round(value * 10) / 10);
  if (duration < 1_000) return `${Math.round(duration)} ms`;
  if (duration < 120_000) return `${rounded(duration / 1_000)} s`;
  if (duration < 7_200_000) return `${rounded(duration / 60_000)} min`;
  if (duration < 172_800_000) return `${rounded(duration / 3_600_000)} h`;
  return `${rounded(duration / 86_400_000)} days`;
}
