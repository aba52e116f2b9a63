import { QueueError } from '../../../errors.ts';
import type { AttemptError } from '../../schema/attempt-error.ts';
import type { FinalRecord } from './final-record.ts';

/*
 * Apart from the other errors: an app that does not wait for results does not load them.
 */

/** A wait was over before the job was. The job goes on; wait for it again, by its `jobId`. */
export class WaitTimeoutError extends QueueError {
  override name = 'WaitTimeoutError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.WaitTimeoutError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    readonly timeoutMs: number,
    options?: ErrorOptions,
  ) {
    super(
      `Job ${jobId} ('${kind}') did not end within the timeoutMs of ${timeoutMs} ms. ` +
        'If a worker serves its queue, the job continues: wait again by its id',
      options,
    );
  }
}

/** There is no job to wait for, or it has ended and left no result. */
export class JobGoneError extends QueueError {
  override name = 'JobGoneError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.JobGoneError');
  constructor(
    readonly kind: string,
    readonly jobId: number,
    /** `not-kept`: it was live when the wait began. `unknown`: it has never been seen. */
    readonly reason: 'not-kept' | 'unknown',
  ) {
    super(
      `Job ${jobId} ('${kind}') ${
        reason === 'not-kept'
          ? 'has ended without a result: a job that completes with keepResult: false leaves none'
          : 'was not found: its result was pruned or not kept, no job has this id, ' +
            'or the transaction that enqueued it has not committed'
      }`,
    );
  }
}

/** What {@link Queue.run} throws when its job was discarded or cancelled. */
export class JobFailedError extends QueueError {
  override name = 'JobFailedError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.JobFailedError');
  readonly kind: string;
  readonly jobId: number;
  /** The last error that is stored with the job, or why it was cancelled. */
  readonly error: AttemptError | undefined;

  constructor(readonly record: FinalRecord & { readonly state: 'discarded' | 'cancelled' }) {
    const error = record.errors.at(-1);
    super(
      `Job ${record.id} ('${record.kind}') was ${record.state}: ${error?.message ?? 'no error is stored'}`,
    );
    this.kind = record.kind;
    this.jobId = record.id;
    this.error = error;
  }
}
