import type { AttemptAddedTo } from '../../../core/worker/run/added-context.ts';

/** For how long something of an attempt is tried again while the database does not answer. */
export interface RetryUntil {
  /** Ends the sleep before the next try. */
  readonly signal: AbortSignal;
  /** @throws why it is not tried again */
  check(): void;
}

export function untilTold({ signal }: Pick<AttemptAddedTo, 'signal'>): RetryUntil {
  return { signal, check: () => signal.throwIfAborted() };
}

/** Until the attempt is over: one that was told to end may have something to undo, and is not repeated. */
export function untilOver(attempt: Pick<AttemptAddedTo, 'checkOpen'>): RetryUntil {
  return {
    // Made when it is needed: most answers come at once.
    get signal() {
      return new AbortController().signal;
    },
    check: () => attempt.checkOpen(),
  };
}
