import { QueueError } from '../../../errors.ts';

/** Answers that may still come, by the error that was thrown in their place. */
const lateAnswers = new WeakMap<object, Promise<void>>();

/**
 * The database has not answered a statement of a worker in time. The worker goes on as after a lost
 * connection: whatever the statement may have done is looked for, or repeated under the same fence.
 */
export class NoAnswerError extends QueueError {
  override name = 'NoAnswerError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.NoAnswerError');

  constructor(
    /** The part of the worker that asked. */
    readonly part: string,
    /** How long it waited, in milliseconds. */
    readonly waitedMs: number,
    late?: Promise<void>,
  ) {
    const seconds = (waitedMs / 1_000).toFixed(1);
    super(
      late === undefined
        ? `The pool had no connection for a statement of the worker (${part}) within ${seconds} s. ` +
            'Increase the size of the connection pool, or hold its connections for a shorter time'
        : `The database has not answered a statement of the worker (${part}) for ${seconds} s. ` +
            'The worker gives up that connection and asks again on another',
    );
    if (late !== undefined) lateAnswers.set(this, late);
  }
}

/**
 * Resolves when the answer that was given up has come after all, or never can. Until then the server may
 * still carry out the statement. `undefined`: the statement was never sent, or the error is another.
 */
export function lateAnswerTo(error: unknown): Promise<void> | undefined {
  return typeof error === 'object' && error !== null ? lateAnswers.get(error) : undefined;
}
