import type { JobFate } from '../../queries/settle/find-fates.ts';
import type { CancelledInstead, Settlement, SettleResult } from './settlement.ts';

/**
 * What became of a settlement whose answer was lost, and that matches nothing when it is sent again: either
 * the first try took effect, or the job was lost before it. The place where the job is now tells which;
 * `undefined` means that it is nowhere. Only this worker completes, discards or puts back a job under its
 * fence, and a history of errors names its attempt. For a job that was put back without an error and claimed
 * since, the attempt number tells: the attempt was given back, so the next claim counts it again, unlike
 * after a takeover. After several more claims the number tells nothing, and the result is `lost`.
 */
export function whatBecame(settlement: Settlement, fate: JobFate | undefined): SettleResult {
  const { fence, transition } = settlement;
  if (fate === undefined) return transition.type === 'finish' ? 'written' : 'lost';
  const { error } = transition;
  const recorded =
    error !== null &&
    fate.errors.some(({ attempt, message }) => attempt === error.attempt && message === error.message);
  if (transition.type === 'finish') {
    // A discarded job may have been redriven since.
    const { state } = transition;
    // What is not discarded, since its end was requested, ends as cancelled.
    if (fate.fence === fence && fate.state === 'cancelled' && state === 'discarded') return cancelledAs(fate);
    const ended = fate.state === null ? recorded : fate.fence === fence && fate.state === state;
    return ended ? 'written' : 'lost';
  }
  if (fate.fence === fence) {
    if (fate.held) return 'lost';
    if (fate.state !== 'cancelled') return 'written';
    return cancelledAs(fate);
  }
  // A failed attempt is spent, so there the attempt says nothing; the history has it instead.
  if (error !== null) return recorded ? 'written' : 'lost';
  const claimedOnce = fate.fence === fence + 1 && (fate.held || fate.state !== null);
  return claimedOnce && fate.attempt === transition.attempt + 1 ? 'written' : 'lost';
}

function cancelledAs({ errors }: JobFate): CancelledInstead {
  return { cancelled: errors.at(-1)?.message ?? '' };
}
