import { warnOnce } from '../../drivers/warn-once.ts';
import type { Backoff } from '../../job/backoff.ts';
import type { Outcome } from '../../job/outcome.ts';
import { MAX_BACKOFF_MS, type Transition, transitionFor } from '../../job/transition.ts';
import { isPromise } from '../base/is-promise.ts';
import type { Attempt } from '../run/attempt.ts';

/** The row change that an attempt's end calls for. After a failure it calls the app's backoff. */
export function transitionOf(attempt: Attempt, outcome: Outcome): Transition {
  const { facts, job } = attempt;
  if (outcome.type !== 'failed') return transitionFor(outcome, facts);
  const backoff = watched(job.kind, facts.backoff);
  return attempt.inContext(() => transitionFor(outcome, { ...facts, backoff }));
}

/** Returns what the backoff returns. */
function watched(kind: string, backoff: Backoff): Backoff {
  return (attempt, error) => {
    const delayMs = backoff(attempt, error);
    // Of an async one, which is not asked for its answer, a rejection would end the process.
    if (isPromise<unknown>(delayMs)) Promise.resolve(delayMs).catch(() => undefined);
    if (delayMs > MAX_BACKOFF_MS) {
      const warning =
        `The backoff of '${kind}' returned ${delayMs} milliseconds. A job waits for a year at most, ` +
        'so it is due again in a year. Return less from the backoff';
      warnOnce(warning, `backoff of ${kind}`);
    }
    return delayMs;
  };
}
