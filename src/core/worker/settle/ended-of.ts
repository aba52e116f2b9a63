import type { Transition, Verdict } from '../../job/transition.ts';
import type { Attempt } from '../run/attempt.ts';
import type { AttemptEnd, EndedAttempt } from '../run/ended-attempt.ts';
import type { EndResult } from './announce.ts';

/** An attempt whose end is written. */
export interface WrittenEnd {
  readonly verdict: Verdict;
  readonly transition: Transition;
  readonly settled: Exclude<EndResult, 'abandoned'>;
  readonly durationMs: number;
}

/** What became of an attempt that was concluded. */
export function endedOf({ job, began, beganAt }: Attempt, end: WrittenEnd): EndedAttempt {
  const { queue, kind } = job;
  const waitMs = beganAt && Math.max(0, beganAt.getTime() - job.runAt.getTime());
  return { queue, kind, as: endedAs(end), waitMs, runMs: began ? end.durationMs : undefined };
}

function endedAs({ verdict, transition, settled }: WrittenEnd): AttemptEnd {
  if (settled === 'lost') return 'lost';
  if (settled === 'completed by handler') return 'completed';
  if (typeof settled === 'object') return 'cancelled';
  if (verdict.type === 'waiting') return 'snoozed';
  if (verdict.type !== 'failed') return verdict.type;
  return transition.type === 'reschedule' ? 'retried' : 'discarded';
}
