import type { Transition, Verdict } from '../../job/transition.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { Attempt } from '../run/attempt.ts';
import type { AttemptEnd, EndedAttempt } from '../run/ended-attempt.ts';
import { isCancelledInstead, type SettleResult } from './settlement.ts';

/** What became of a settlement, or that the handler's own transaction has ended the job. */
export type EndResult = SettleResult | 'completed by handler';

/** An attempt whose end is written. */
export interface WrittenEnd {
  readonly verdict: Verdict;
  readonly transition: Transition;
  readonly settled: Exclude<EndResult, 'abandoned'>;
  readonly durationMs: number;
}

/** Emits what became of an attempt, after it was written. */
export function announce(
  events: WorkerEmitter,
  attempt: Attempt,
  { verdict, transition, settled, durationMs }: WrittenEnd,
): void {
  const { job } = attempt;
  if (settled === 'lost') {
    events.emit('lost', { job });
    return;
  }
  if (settled === 'completed by handler') {
    events.emit('completed', { job, durationMs });
    return;
  }
  if (isCancelledInstead(settled)) {
    if (verdict.type === 'failed')
      events.emit('failed', { job, error: verdict.error, retryInMs: undefined, durationMs });
    events.emit('cancelled', { job, reason: settled.cancelled, durationMs });
    return;
  }
  switch (verdict.type) {
    case 'completed':
      events.emit('completed', { job, durationMs });
      return;
    case 'failed': {
      const retryInMs = transition.type === 'reschedule' ? (transition.delayMs ?? 0) : undefined;
      events.emit('failed', { job, error: verdict.error, retryInMs, durationMs });
      if (retryInMs === undefined) events.emit('discarded', { job, error: verdict.error });
      return;
    }
    case 'snoozed':
      events.emit('snoozed', { job, delayMs: verdict.delayMs, durationMs });
      return;
    case 'waiting':
      events.emit('waiting', { job, delayMs: verdict.delayMs, durationMs });
      return;
    case 'cancelled':
      events.emit('cancelled', { job, reason: verdict.reason, durationMs });
      return;
    case 'interrupted':
      events.emit('interrupted', { job, began: attempt.began });
      return;
  }
}

/** The same for what counts attempts. */
export function endedOf({ job, began, beganAt }: Attempt, end: WrittenEnd): EndedAttempt {
  const { queue, kind } = job;
  const waitMs = beganAt && Math.max(0, beganAt.getTime() - job.runAt.getTime());
  return { queue, kind, as: endedAs(end), waitMs, runMs: began ? end.durationMs : undefined };
}

function endedAs({ verdict, transition, settled }: WrittenEnd): AttemptEnd {
  if (settled === 'lost') return 'lost';
  if (settled === 'completed by handler') return 'completed';
  if (isCancelledInstead(settled)) return 'cancelled';
  if (verdict.type === 'waiting') return 'snoozed';
  if (verdict.type !== 'failed') return verdict.type;
  return transition.type === 'reschedule' ? 'retried' : 'discarded';
}
