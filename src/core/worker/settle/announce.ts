import type { Transition, Verdict } from '../../job/transition.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { Attempt } from '../run/attempt.ts';
import type { SettleResult } from './settlement.ts';

/** What became of a settlement, or that the handler's own transaction has ended the job. */
export type EndResult = SettleResult | 'completed by handler';

/** Emits what became of an attempt, after it was written. */
export function announce(
  events: WorkerEmitter,
  attempt: Attempt,
  outcome: Verdict,
  written: {
    readonly transition: Transition;
    readonly settled: Exclude<EndResult, 'abandoned'>;
    readonly durationMs: number;
  },
): void {
  const { job } = attempt;
  const { transition, settled, durationMs } = written;
  if (settled === 'lost') {
    events.emit('lost', { job });
    return;
  }
  if (settled === 'completed by handler') {
    events.emit('completed', { job, durationMs });
    return;
  }
  if (typeof settled === 'object') {
    if (outcome.type === 'failed')
      events.emit('failed', { job, error: outcome.error, retryInMs: undefined, durationMs });
    events.emit('cancelled', { job, reason: settled.cancelled, durationMs });
    return;
  }
  switch (outcome.type) {
    case 'completed':
      events.emit('completed', { job, durationMs });
      return;
    case 'failed': {
      const retryInMs = transition.type === 'reschedule' ? (transition.delayMs ?? 0) : undefined;
      events.emit('failed', { job, error: outcome.error, retryInMs, durationMs });
      if (retryInMs === undefined) events.emit('discarded', { job, error: outcome.error });
      return;
    }
    case 'snoozed':
      events.emit('snoozed', { job, delayMs: outcome.delayMs, durationMs });
      return;
    case 'waiting':
      events.emit('waiting', { job, delayMs: outcome.delayMs, durationMs });
      return;
    case 'cancelled':
      events.emit('cancelled', { job, reason: outcome.reason, durationMs });
      return;
    case 'interrupted':
      events.emit('interrupted', { job, began: attempt.began });
      return;
  }
}
