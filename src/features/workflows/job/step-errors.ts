import { NonRetryableError, QueueError } from '../../../errors.ts';
import type { StepErrorRecord, StepKind } from '../schema/queue-steps.ts';

/*
 * Apart from the other errors: an app without workflows does not load them.
 */

/** Two steps of one run have the same name, so that a later run could not tell them apart. */
export class DuplicateStepError extends NonRetryableError {
  override name = 'DuplicateStepError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.DuplicateStepError');
  constructor(
    readonly kind: string,
    readonly step: string,
  ) {
    super(
      `'${kind}' has two steps '${step}'. Give each a name of its own: in a loop, put the key of the item ` +
        `into it, as in step.run(\`${step}-\${id}\`, …)`,
    );
  }
}

/** A step is recorded as something else than the code now says. */
export class StepMismatchError extends QueueError {
  override name = 'StepMismatchError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.StepMismatchError');
  constructor(
    readonly kind: string,
    readonly step: string,
    readonly recorded: StepKind,
    readonly found: StepKind,
  ) {
    super(
      `The step '${step}' of '${kind}' was recorded as '${recorded}' and is '${found}' in the code. ` +
        'Rename it in the code: a new name is a new step',
    );
  }
}

/** A step was begun inside another one. */
export class NestedStepError extends NonRetryableError {
  override name = 'NestedStepError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.NestedStepError');
  constructor(
    readonly kind: string,
    readonly step: string,
    readonly outer: string,
  ) {
    super(
      `The step '${step}' of '${kind}' was begun inside the step '${outer}'. Steps cannot be nested: ` +
        'return from one, then begin the next',
    );
  }
}

/** A job that a step waited for was discarded or cancelled, or its result is gone. */
export class ChildFailedError extends NonRetryableError {
  override name = 'ChildFailedError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.ChildFailedError');
  constructor(
    /** Of the child, like the two after it. */
    readonly jobId: number,
    readonly kind: string,
    readonly state: 'discarded' | 'cancelled' | 'gone',
    readonly reason: string,
  ) {
    super(`Job ${jobId} ('${kind}') is ${state}: ${reason}`);
  }
}

/** A job has too many steps, or an output of one is too large. */
export class StepLimitError extends NonRetryableError {
  override name = 'StepLimitError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.StepLimitError');
}

/** A step has failed for good: as often as its `attempts` allow. Each later run gets the same error. */
export class StepFailedError extends NonRetryableError {
  override name = 'StepFailedError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.StepFailedError');
  constructor(
    readonly kind: string,
    readonly step: string,
    readonly attempts: number,
    /** What the last attempt has thrown, as it was recorded. */
    readonly error: StepErrorRecord,
    options?: ErrorOptions,
  ) {
    super(`The step '${step}' of '${kind}' failed ${attempts} times: ${error.message}`, options);
  }
}

/** A mailbox has no room: 1,000 signals of this name were not received, or 10,000 were sent in all. */
export class MailboxFullError extends QueueError {
  override name = 'MailboxFullError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.MailboxFullError');
  constructor(
    readonly jobId: number,
    readonly signal: string,
  ) {
    super(
      `Job ${jobId} takes no more signals '${signal}': 1,000 wait to be received, or 10,000 were sent in ` +
        'all. Write frequent events into a table, and send one signal when there is something to read',
    );
  }
}

/** A value does not fit the schema of its signal. */
export class InvalidSignalError extends QueueError {
  override name = 'InvalidSignalError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.InvalidSignalError');
  constructor(
    readonly signal: string,
    readonly reason: string,
  ) {
    super(`The value of the signal '${signal}' is invalid: ${reason}`);
  }
}
