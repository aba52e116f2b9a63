import { JobCancelledError, LeaseLostError, QueueError } from '../../errors.ts';
import { type AttemptFacts, transitionFor } from '../../job/transition.ts';
import { outputToStore } from '../../job/validate.ts';
import type { ClaimedJob } from '../../queries/claim-jobs.ts';
import { completeJob } from '../../queries/complete-job.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database, Executor, Transaction } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { Holder } from '../../sql/fence.ts';
import type { Handler, RunningJob, UntypedContext } from './handler.ts';

/** What all attempts of one worker share. */
export interface AttemptEnvironment {
  /** The worker's database, or the transaction of `runNext`. */
  readonly db: Database;
  readonly tables: QueueTables;
  /** `null` in `runNext`, where the row's lock is the hold. */
  readonly workerId: number | null;
  /** Throws when `complete` must not run in this transaction. */
  readonly checkTransaction?: (tx: Executor) => Promise<void>;
  /** Told what a handler gives to `job.progress`; nobody is, in `runNext`. */
  readonly onProgress?: (attempt: Attempt, value: unknown) => void;
}

/** How long a handler that was told to stop may take to end by itself. */
const INTERRUPT_GRACE_MS = 1_000;

/**
 * One run of a handler for one held job, and the ways to end it from outside. Most attempts are short and end by themselves, so
 * what only the others need is made when it is asked for: an AbortController costs more than all the rest.
 */
export class Attempt {
  #controller: AbortController | undefined;
  /** Why it was told to end. */
  #reason: Error | undefined;
  /** Rejects `run`, while that waits for the handler. */
  #reject: ((reason: Error) => void) | undefined;
  #ended = false;
  #interrupted = false;
  #cancelReason: string | undefined;
  #over = false;
  #completeRan = false;

  constructor(
    readonly job: ClaimedJob,
    readonly handler: Handler,
    readonly environment: AttemptEnvironment,
  ) {
    this.#cancelReason = job.cancelReason ?? undefined;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Why the attempt was told to end, if it was: the reason of its signal. */
  get reason(): Error | undefined {
    return this.#reason;
  }

  /** Whether the worker's stop has ended it. */
  get interrupted(): boolean {
    return this.#interrupted;
  }

  /** Why somebody has asked for the job's end, if that is known. */
  get cancelReason(): string | undefined {
    return this.#cancelReason;
  }

  /** Whether a handler runs that may still write about its job. */
  get open(): boolean {
    return !this.#over && !this.#completeRan;
  }

  /** Whether `complete(tx)` has ended the job, provided that its transaction commits. */
  get completeRan(): boolean {
    return this.#completeRan;
  }

  get held(): Holder {
    return { queue: this.job.queue, workerId: this.environment.workerId };
  }

  get facts(): AttemptFacts {
    const { attempt, maxAttempts } = this.job;
    const { backoff, keepResult } = this.handler.job;
    return { attempt, maxAttempts, backoff, keepResult };
  }

  /**
   * Runs the handler. What it answers, when awaited, is the handler's result, or rejects as soon as the attempt is ended from outside,
   * whatever the handler goes on to do.
   *
   * @throws what a handler throws that is no async function
   */
  run(payload: unknown): unknown {
    if (this.#ended) throw this.#reason;
    const returned = this.handler.run(new Context(this, payload, (tx, output) => this.#complete(tx, output)));
    if (!isPromiseLike(returned)) return returned;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      // A handler that is left behind may still reject; this promise has been settled by then, so nobody hears of it.
      returned.then(resolve, reject);
    });
  }

  /** Ends the attempt at once: the signal is aborted with `reason`, and `run` rejects with it. */
  end(reason: Error): void {
    this.#abort(reason);
    this.#leave();
  }

  /** Ends the attempt because the worker stops; the handler gets a moment to return by itself. */
  interrupt(reason: Error): void {
    if (this.#over || this.#interrupted) return;
    this.#interrupted = true;
    this.#abort(reason);
    setTimeout(() => this.#leave(), INTERRUPT_GRACE_MS).unref();
  }

  /** Tells the handler that somebody asks for the job's end, and goes on waiting for it. */
  cancel(reason: string): void {
    if (this.#over || this.#cancelReason !== undefined) return;
    this.#cancelReason = reason;
    this.#abort(new JobCancelledError(this.job.kind, this.job.id, reason));
  }

  #abort(reason: Error): void {
    // The first reason stays, as a signal's does.
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }

  /** Waits for the handler no longer. */
  #leave(): void {
    this.#ended = true;
    if (this.#reason !== undefined) this.#reject?.(this.#reason);
  }

  /** Passes on how far the handler is, as long as that is of interest. */
  report(value: unknown): void {
    if (this.open) this.environment.onProgress?.(this, value);
  }

  /** From here on `complete` is refused: the attempt's end is decided. */
  close(): void {
    this.#over = true;
  }

  async #complete(tx: Transaction, output: unknown): Promise<void> {
    const { job, handler, environment } = this;
    if (typeof tx?.rollback !== 'function') {
      throw new TypeError(
        'complete(tx) takes a transaction, as db.transaction(async (tx) => …) hands it over',
      );
    }
    this.#checkOpen();
    const json = await outputToStore(handler.job, output);
    await environment.checkTransaction?.(tx);
    this.#checkOpen();
    await faultPoint('complete: checked');
    const transition = transitionFor({ type: 'completed', output: json }, this.facts);
    if (transition.type !== 'finish') throw new TypeError('A completed attempt finishes its job');
    // Before the statement: once it is sent it may take effect, whatever comes back.
    this.#completeRan = true;
    const finish = { id: job.id, fence: job.fence, transition };
    const completion = await completeJob(tx, environment.tables, this.held, finish);
    if (completion === 'completed') return;
    this.#completeRan = false;
    if (completion === 'lost') throw new LeaseLostError(job.kind, job.id);
    throw new QueueError(
      `Job ${job.id} ('${job.kind}') is not completed: complete(tx) did not run inside a transaction, whose connection was lost or which is over`,
    );
  }

  #checkOpen(): void {
    const { kind, id } = this.job;
    if (this.#over) throw new LeaseLostError(kind, id, 'this attempt is already over');
    if (this.#completeRan) throw new LeaseLostError(kind, id, 'complete has already been called');
  }
}

/** What the handler gets. */
class Context implements UntypedContext {
  readonly job: RunningJob;
  readonly db: Database;
  declare readonly signal: AbortSignal;
  readonly #attempt: Attempt;

  constructor(
    attempt: Attempt,
    readonly payload: unknown,
    readonly complete: UntypedContext['complete'],
  ) {
    this.#attempt = attempt;
    // Onto the job itself: a copy with one property more takes longer than the rest of a short attempt.
    const job: ClaimedJob & { progress?: RunningJob['progress'] } = attempt.job;
    job.progress = (value) => attempt.report(value);
    // What it lacked it has been given.
    this.job = job as RunningJob;
    this.db = attempt.environment.db;
    // Made when it is looked at; yet the context's own, so that a copy ({ ...context }) has it too.
    Object.defineProperty(this, 'signal', Context.#signal);
  }

  static readonly #signal = {
    enumerable: true,
    get(this: Context): AbortSignal {
      return this.#attempt.signal;
    },
  };
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
