import { checkDurationMs } from './limits.ts';
import { shown } from './shown.ts';

/** How one attempt ended. A value, so that nothing is thrown past the place where an attempt runs. */
export type Outcome =
  /** The handler returned; `output` is JSON text. */
  | { readonly type: 'completed'; readonly output: string }
  /** The handler called `complete(tx)` and returned: its transaction ends the job, unless it rolls back. */
  | { readonly type: 'committed' }
  /** The handler threw, took too long, or its payload or output was invalid. */
  | { readonly type: 'failed'; readonly error: unknown }
  /** The handler asked to run later, without spending the attempt. */
  | { readonly type: 'snoozed'; readonly delayMs: number }
  /**
   * The handler waits for something in its middle, and is called again then. `null`: without a limit of time.
   */
  | { readonly type: 'waiting'; readonly delayMs: number | null }
  /** The handler asked to end the job. */
  | { readonly type: 'cancelled'; readonly reason: string }
  /** The handler was not called, or not waited for until its end. The attempt is given back. */
  | { readonly type: 'interrupted' };

/*
 * Brands of the global registry: a process can have two copies of this package, ES modules and CommonJS. A
 * worker of one then gets a snooze of the other, which `instanceof` would take for an output.
 */
const SNOOZE: unique symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.snooze');
const CANCEL: unique symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.cancel');
const FAIL: unique symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.fail');
const WAIT: unique symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.wait');

/** What {@link snooze} returns. */
export class Snooze {
  /** Keeps the type nominal as well: an output that happens to have a `delayMs` is not a snooze. */
  readonly [SNOOZE] = true;
  constructor(readonly delayMs: number) {}
}

/** What {@link cancel} returns. */
export class Cancel {
  /** Keeps the type nominal as well: an output that happens to have a `reason` is not a cancel. */
  readonly [CANCEL] = true;
  constructor(readonly reason: string) {}
}

/** What {@link fail} returns. */
export class Fail {
  /** Keeps the type nominal as well: an output that happens to have an `error` is not a failure. */
  readonly [FAIL] = true;
  constructor(readonly error: unknown) {}
}

/** What `next` of `around.run` resolves with when the handler is left behind because it waits. */
export class Wait {
  readonly [WAIT] = true;
  /** @param delayMs until when, in milliseconds from now; `null`: without a limit of time */
  constructor(readonly delayMs: number | null) {}
}

/** Whether `next` of `around.run` has resolved because the handler waits. */
export function isWait(returned: unknown): returned is Wait {
  return typeof returned === 'object' && returned !== null && WAIT in returned;
}

/** Whether a handler has returned what {@link snooze} of any copy of this package makes. */
export function isSnooze(returned: unknown): returned is Snooze {
  return typeof returned === 'object' && returned !== null && SNOOZE in returned;
}

/** Whether a handler has returned what {@link cancel} of any copy of this package makes. */
export function isCancel(returned: unknown): returned is Cancel {
  return typeof returned === 'object' && returned !== null && CANCEL in returned;
}

/** Whether a handler has returned what {@link fail} of any copy of this package makes. */
export function isFail(returned: unknown): returned is Fail {
  return typeof returned === 'object' && returned !== null && FAIL in returned;
}

/**
 * Return it from a handler to run the job again later without spending the attempt, any number of times.
 *
 * @param delayMs milliseconds from now, by the database's clock; 0 runs it again at once
 * @throws RangeError when the delay is negative or not a number
 */
export function snooze(delayMs: number): Snooze {
  return new Snooze(checkDurationMs('snooze: delayMs', delayMs));
}

/** Return it from a handler to end the job as cancelled, without a retry; its result keeps the reason. */
export function cancel(reason: string): Cancel {
  // For callers without TypeScript: some values cannot become a text.
  return new Cancel(typeof reason === 'string' ? reason : shown(reason));
}

/**
 * Return it from a handler to fail the attempt, as a throw of this error does; a batch handler returns it for
 * a single job.
 *
 * @param error anything that can be thrown; a `NonRetryableError` discards the job
 */
export function fail(error: unknown): Fail {
  return new Fail(error);
}
