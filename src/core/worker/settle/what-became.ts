import type { JobFate } from '../../queries/settle/find-fates.ts';
import type { Settlement, SettleResult } from './settlement.ts';

/**
 * What became of a settlement whose answer was lost, and that matches nothing when it is sent again: either
 * the first try took effect, or the job had been lost before it. Told by where the job is now; `undefined` is
 * nowhere. Under our fence nobody else completes, discards or puts back a job, and a history of errors names
 * our attempt. What was put back without an error and claimed since is told by the attempt: it was given
 * back, so the next claim counts it again, which a takeover would not have. After several more claims that
 * says nothing, and the result is `lost`.
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
    const ended = fate.state === null ? recorded : fate.fence === fence && fate.state === transition.state;
    return ended ? 'written' : 'lost';
  }
  if (fate.fence === fence) {
    if (fate.held) return 'lost';
    if (fate.state !== 'cancelled') return 'written';
    return { cancelled: fate.errors.at(-1)?.message ?? '' };
  }
  // A failed attempt is spent, so there the attempt says nothing; the history has it instead.
  if (error !== null) return recorded ? 'written' : 'lost';
  const claimedOnce = fate.fence === fence + 1 && (fate.held || fate.state !== null);
  return claimedOnce && fate.attempt === transition.attempt + 1 ? 'written' : 'lost';
}
