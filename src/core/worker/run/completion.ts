import { LeaseLostError, QueueError } from '../../../errors.ts';
import { type AttemptFacts, transitionFor } from '../../job/transition.ts';
import { outputToStore } from '../../job/validate.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { lockHeldJob } from '../../queries/hold/lock-held-jobs.ts';
import { completeJobs } from '../../queries/settle/complete-job.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Executor, Transaction } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { Holder } from '../../sql/fence.ts';
import { whileLocked } from '../../time/while-locked.ts';
import type { Handler } from './handler.ts';

export interface AttemptToComplete {
  readonly job: ClaimedJob;
  readonly handler: Handler;
  readonly holder: Holder;
  readonly facts: AttemptFacts;
  readonly environment: {
    readonly tables: QueueTables;
    readonly checkTransaction?: (tx: Executor) => Promise<void>;
  };
  /** Throws when the attempt is over. */
  checkOpen(): void;
  /** Waits for a value, or until the attempt is ended. */
  until<T>(answer: T | PromiseLike<T>): T | Promise<T>;
}

const AGAIN = 'complete has already been called';
export const STILL_AT_WORK = `${AGAIN}, and is still running`;
export const STILL_OPEN = `${AGAIN}, in another transaction that is still open`;
export const HAS_COMMITTED = `${AGAIN}, in this transaction or in one that has committed`;

/** The `complete(tx)` of one attempt: it can be called again when its transaction has rolled back. */
export class Completion {
  #ran = false;
  #underWay = false;

  constructor(private readonly attempt: AttemptToComplete) {}

  /** Whether the job has been ended in a transaction, provided that this commits. */
  get ran(): boolean {
    return this.#ran;
  }

  /** See `HandlerContext.complete`. */
  async complete(tx: Transaction, output: unknown): Promise<void> {
    const { job, handler, environment } = this.attempt;
    checkIsTransaction(tx);
    if (this.#underWay) throw new LeaseLostError(job.kind, job.id, STILL_AT_WORK);
    this.#underWay = true;
    try {
      this.attempt.checkOpen();
      const json = await this.attempt.until(outputToStore(handler.job, output));
      await environment.checkTransaction?.(tx);
      if (this.#ran) await this.#lockAgain(tx);
      this.attempt.checkOpen();
      await faultPoint('complete: checked');
      await this.#finish(tx, json);
    } finally {
      this.#underWay = false;
    }
  }

  async #finish(tx: Transaction, json: string): Promise<void> {
    const { job, facts, environment, holder } = this.attempt;
    const transition = transitionFor({ type: 'completed', output: json }, facts);
    if (transition.type !== 'finish') throw new TypeError('A completed attempt finishes its job');
    const ranBefore = this.#ran;
    // Before the statement: once it is sent it may take effect, whatever comes back.
    this.#ran = true;
    const finish = { id: job.id, fence: job.fence, transition };
    const completion = await completeJobs(tx, environment.tables, holder, [finish]);
    if (completion === 'completed') return;
    this.#ran = ranBefore;
    throw completion === 'outside' ? outsideTransaction(job) : this.#lost();
  }

  /**
   * Only the database knows whether an earlier call's transaction has rolled back. While it is open the row
   * is locked, and waiting could last for ever: this very handler may have it open around this one. A server
   * may need a moment to end the transaction of a connection that was lost.
   */
  async #lockAgain(tx: Transaction): Promise<void> {
    const { job, environment, holder } = this.attempt;
    const found = await whileLocked(() => lockHeldJob(tx, environment.tables, holder, job));
    if (found === 'gone') throw this.#lost();
    if (found === 'locked') throw new LeaseLostError(job.kind, job.id, STILL_OPEN);
  }

  #lost(): LeaseLostError {
    const { kind, id } = this.attempt.job;
    return this.#ran ? new LeaseLostError(kind, id, HAS_COMMITTED) : new LeaseLostError(kind, id);
  }
}

/** For callers without TypeScript. @throws TypeError */
export function checkIsTransaction(tx: Transaction): void {
  if (typeof tx?.rollback === 'function') return;
  throw new TypeError('complete(tx) takes a transaction, as db.transaction(async (tx) => …) hands it over');
}

export function outsideTransaction({ kind, id }: ClaimedJob): QueueError {
  return new QueueError(
    `Job ${id} ('${kind}') was not completed: complete(tx) did not run inside a transaction, ` +
      'or the transaction has ended or lost its connection',
  );
}
