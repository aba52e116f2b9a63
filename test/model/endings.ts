import {
  cancel,
  defineJob,
  fixedBackoff,
  type Handler,
  handle,
  NonRetryableError,
  snooze,
} from 'drizzle-queue';
import type { Outcome } from '../../src/core/job/outcome.ts';
import {
  cancellation,
  type Finish,
  type Park,
  type Reschedule,
  type Transition,
  transitionFor,
} from '../../src/core/job/transition.ts';
import type { ClaimedJob } from '../../src/core/queries/claim/claim-jobs.ts';
import {
  BACKOFF_MS,
  type Ending,
  endingOfRunNext,
  KIND_OF_OUTCOMES,
  KIND_WITHOUT_RESULT,
  type ModelAttempt,
  SNOOZE_MS,
  WAIT_MS,
} from './model-job.ts';
import { oneOf } from './one-of.ts';
import type { PastClaims } from './past-claims.ts';

const backoff = fixedBackoff(BACKOFF_MS);
const kept = defineJob('kept', { backoff });
const forgotten = defineJob(KIND_WITHOUT_RESULT, { backoff, keepResult: false });
const outcomeOnly = defineJob(KIND_OF_OUTCOMES, { backoff, keepResult: 'outcome' });

/** An attempt in the hands of the worker that made it, with the whole claimed job. */
export interface Claimed extends ModelAttempt {
  readonly workerId: number;
  readonly job: ClaimedJob;
}

/** An attempt, and how it ends. */
export interface Ended {
  readonly claimed: Claimed;
  readonly ending: Ending;
}

/** What a worker writes about an attempt. */
export interface Settlement<TTransition extends Transition = Transition> {
  readonly id: number;
  readonly fence: number;
  readonly transition: TTransition;
}

/** What a handler can do. Waiting is decided in the middle of an attempt. */
const outcomes: Readonly<Record<Exclude<Ending, 'wait' | 'wait for a time'>, Outcome>> = {
  complete: { type: 'completed', output: '{"done":true}' },
  fail: { type: 'failed', error: new Error('no') },
  'fail for good': { type: 'failed', error: new NonRetryableError('never') },
  snooze: { type: 'snoozed', delayMs: SNOOZE_MS },
  cancel: { type: 'cancelled', reason: 'gone' },
  interrupt: { type: 'interrupted' },
};

export function definitionOf(kind: string) {
  if (kind === KIND_WITHOUT_RESULT) return forgotten;
  return kind === KIND_OF_OUTCOMES ? outcomeOnly : kept;
}

/** What a worker writes about an attempt that ended so. */
export function settlementOf({ id, fence, job }: Claimed, ending: Ending): Settlement {
  const { keepResult } = definitionOf(job.kind);
  const { attempt, maxAttempts } = job;
  if (ending === 'wait' || ending === 'wait for a time') {
    const delayMs = ending === 'wait' ? null : WAIT_MS;
    return { id, fence, transition: { type: 'park', delayMs, attempt: attempt - 1, error: null } };
  }
  return {
    id,
    fence,
    transition: transitionFor(outcomes[ending], { attempt, maxAttempts, backoff, keepResult }),
  };
}

/** What one worker has in one queue, with how it ends. */
export function endedTogether(claims: PastClaims, attempt: number, endings: readonly Ending[]): Ended[] {
  return claims
    .ofOneWorker(attempt)
    .slice(-endings.length)
    .map((claimed, index) => ({ claimed, ending: oneOf(endings, index) }));
}

export function finishOf(claimed: Claimed, ending: Ending): Settlement<Finish> {
  const settlement = settlementOf(claimed, ending);
  if (isFinish(settlement)) return settlement;
  throw new Error(`'${ending}' does not finish a job`);
}

export function isFinish(settlement: Settlement): settlement is Settlement<Finish> {
  return settlement.transition.type === 'finish';
}

export function isDiscard(settlement: Settlement): settlement is Settlement<Finish> {
  return isFinish(settlement) && settlement.transition.state === 'discarded';
}

/** What a worker writes when a job was not discarded: its end may have been requested. */
export function insteadOfDiscard({ id, fence, transition }: Settlement<Finish>): Settlement<Finish> {
  const error = cancellation(transition.error?.attempt ?? 0, 'cancelled');
  return { id, fence, transition: { ...transition, state: 'cancelled', error } };
}

export function isReschedule(settlement: Settlement): settlement is Settlement<Reschedule> {
  return settlement.transition.type === 'reschedule';
}

export function isPark(settlement: Settlement): settlement is Settlement<Park> {
  return settlement.transition.type === 'park';
}

/** Handlers whose attempts end so. */
export function handlersThat(ending: Ending, kinds: readonly string[]): Handler[] {
  return kinds.map((kind) =>
    handle(definitionOf(kind), () => {
      const possible = endingOfRunNext(ending);
      if (possible === 'wait' || possible === 'wait for a time') throw new Error('no handler waits');
      const outcome = outcomes[possible];
      if (outcome.type === 'failed') throw outcome.error;
      if (outcome.type === 'snoozed') return snooze(outcome.delayMs);
      if (outcome.type === 'cancelled') return cancel(outcome.reason);
      return { done: true };
    }),
  );
}
