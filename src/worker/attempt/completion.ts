import { LeaseLostError, QueueError } from '../../errors.ts';
import { type AttemptFacts, transitionFor } from '../../job/transition.ts';
import { outputToStore } from '../../job/validate.ts';
import type { ClaimedJob } from '../../queries/claim-jobs.ts';
import { completeJob } from '../../queries/complete-job.ts';
import { lockHeldJob } from '../../queries/lock-held-job.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Executor, Transaction } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { Holder } from '../../sql/fence.ts';
import type { Handler } from './handler.ts';

/** What `complete(tx)` needs of an attempt. */
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

/** How often, and how far apart, a row that another transaction has locked is tried: for 0.3 s. */
const MAX_TRIES = 6;
const FIRST_WAIT_MS = 10;

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
    if (typeof tx?.rollback !== 'function') {
      throw new TypeError(
        'complete(tx) takes a transaction, as db.transaction(async (tx) => …) hands it over',
      );
    }
    if (this.#underWay) throw new LeaseLostError(job.kind, job.id, `${AGAIN}, and is still at work`);
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
    const completion = await completeJob(tx, environment.tables, holder, finish);
    if (completion === 'completed') return;
    this.#ran = ranBefore;
    if (completion === 'lost') throw this.#lost();
    throw new QueueError(
      `Job ${job.id} ('${job.kind}') is not completed: complete(tx) did not run inside a transaction, ` +
        'whose connection was lost or which is over',
    );
  }

  /**
   * Only the database knows whether an earlier call's transaction has rolled back. While it is open the row
   * is locked, and waiting could last for ever: this very handler may have it open around this one.
   */
  async #lockAgain(tx: Transaction): Promise<void> {
    const { job, environment, holder } = this.attempt;
    for (let tries = 1, waitMs = FIRST_WAIT_MS; ; tries++, waitMs *= 2) {
      const found = await lockHeldJob(tx, environment.tables, holder, job);
      if (found === 'locked here') return;
      if (found === 'gone') throw this.#lost();
      if (tries === MAX_TRIES) {
        throw new LeaseLostError(job.kind, job.id, `${AGAIN}, in another transaction that is still open`);
      }
      // A server may need a moment to end the transaction of a connection that was lost.
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  #lost(): LeaseLostError {
    const { kind, id } = this.attempt.job;
    if (!this.#ran) return new LeaseLostError(kind, id);
    return new LeaseLostError(kind, id, `${AGAIN}, in this transaction or in one that has committed`);
  }
}
