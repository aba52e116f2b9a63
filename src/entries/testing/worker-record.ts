import type { JobDefinition, WorkerEvents } from '../../index.ts';
import { describeThrown } from '../../internal.ts';

/** The events of a worker that are about one job. */
export type JobEvent = {
  [K in keyof WorkerEvents]: WorkerEvents[K] extends [{ readonly job: unknown }] ? K : never;
}[keyof WorkerEvents];

/** What a worker announces with an event of one job. */
export type ToldOf<TEvent extends JobEvent> = WorkerEvents[TEvent][0];

/** Which jobs are meant: those that fit all that is given. */
export interface JobSelector<TEvent extends JobEvent = JobEvent> {
  /** Of this definition's kind. */
  job?: JobDefinition | undefined;
  id?: number | undefined;
  /** What else must hold of what the worker announces. */
  where?: ((told: ToldOf<TEvent>) => boolean) | undefined;
  /** How long to wait at most, in milliseconds. @default 5_000 */
  timeoutMs?: number | undefined;
}

export const JOB_EVENTS: readonly JobEvent[] = [
  'began',
  'completed',
  'failed',
  'discarded',
  'snoozed',
  'waiting',
  'cancelled',
  'interrupted',
  'lost',
];

/** One event, as it was announced. */
export interface Announced {
  readonly event: JobEvent;
  readonly told: ToldOf<JobEvent>;
}

export function fits<TEvent extends JobEvent>(told: ToldOf<TEvent>, selector: JobSelector<TEvent>): boolean {
  const { job, id, where } = selector;
  if (job !== undefined && told.job.kind !== job.kind) return false;
  if (id !== undefined && told.job.id !== id) return false;
  return where?.(told) ?? true;
}

/** What was waited for, and what came instead: the last ten events. */
export function missed(
  caller: string,
  event: JobEvent,
  { job, id, timeoutMs }: JobSelector,
  announced: readonly Announced[],
): string {
  const whose = [
    ...(job === undefined ? [] : [`of '${job.kind}'`]),
    ...(id === undefined ? [] : [`of job ${id}`]),
  ];
  const last = announced.slice(-10).map(({ event, told }) => {
    const why = 'error' in told ? ` (${describeThrown(told.error).message})` : '';
    return `\n  ${event} ${told.job.id} '${told.job.kind}'${why}`;
  });
  const came = last.length === 0 ? 'the worker announced nothing' : `it announced${last.join('')}`;
  return `${caller}: no '${event}' ${[...whose, ''].join(' ')}within ${timeoutMs} ms; ${came}`;
}
