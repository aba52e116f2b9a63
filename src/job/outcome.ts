import { checkDurationMs } from './limits.ts';
import { shown } from './shown.ts';

/** How one attempt ended. A value, so that nothing is thrown past the place where an attempt runs. */
export type Outcome =
  /** The handler returned; `output` is JSON text. */
  | { readonly type: 'completed'; readonly output: string }
  /** The handler threw, took too long, or its payload or output was invalid. */
  | { readonly type: 'failed'; readonly error: unknown }
  /** The handler asked for later, without spending the attempt. */
  | { readonly type: 'snoozed'; readonly delayMs: number }
  /** The handler asked for the end. */
  | { readonly type: 'cancelled'; readonly reason: string }
  /** The worker stopped first. The attempt is given back. */
  | { readonly type: 'interrupted' };

/** What {@link snooze} returns. */
export class Snooze {
  /** Keeps the type nominal: an output that happens to have a `delayMs` is no snooze. */
  readonly #snooze = true;
  constructor(readonly delayMs: number) {
    void this.#snooze;
  }
}

/** What {@link cancel} returns. */
export class Cancel {
  /** Keeps the type nominal: an output that happens to have a `reason` is no cancel. */
  readonly #cancel = true;
  constructor(readonly reason: string) {
    void this.#cancel;
  }
}

/**
 * Return it from a handler to run the job again later, without spending the attempt: it waits for something that is not
 * there yet. A job can be snoozed any number of times.
 *
 * @param delayMs milliseconds from now, by the database's clock; 0 runs it again at once
 * @throws RangeError when the delay is negative or not a number
 */
export function snooze(delayMs: number): Snooze {
  return new Snooze(checkDurationMs('snooze: delayMs', delayMs));
}

/**
 * Return it from a handler to end the job as cancelled: the work is no longer wanted. Nothing is retried; the reason is kept
 * in the result's errors.
 */
export function cancel(reason: string): Cancel {
  // For callers without TypeScript: some values cannot become a text.
  return new Cancel(typeof reason === 'string' ? reason : shown(reason));
}
