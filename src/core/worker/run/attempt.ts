import { JobCancelledError, JobDeadlineError, LeaseLostError, QueueError } from '../../../errors.ts';
import { warnOnce } from '../../drivers/warn-once.ts';
import { copyJson } from '../../job/copy-json.ts';
import { goAround } from '../../job/go-around.ts';
import { Wait } from '../../job/outcome.ts';
import { type AttemptFacts, type BackoffCaller, MAX_BACKOFF_MS } from '../../job/transition.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { Around } from '../../queue/enqueue/around.ts';
import { type InContext, setLooseTimeout } from '../../runtime.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database, Executor, Transaction } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import { isPromise } from '../base/is-promise.ts';
import type { AddedContext } from './added-context.ts';
import { type BatchCall, batchCallOf } from './batch-call.ts';
import { Completion } from './completion.ts';
import { Context } from './context.ts';
import type { EndedAttempt } from './ended-attempt.ts';
import type { Handler, JobHandler } from './handler.ts';

/** What all attempts of one worker share. */
export interface AttemptEnvironment {
  /** The worker's database, or the transaction of `runNext`. */
  readonly db: Database;
  readonly tables: QueueTables;
  /** `null` in `runNext`, where the row's lock is the hold. */
  readonly workerId: number | null;
  /** What `createQueue` was given to wrap attempts in. */
  readonly around?: Around | undefined;
  /** Whether anything but the handler may see the payload of its job. @default it does not */
  readonly showsJobs?: () => boolean;
  /** What a feature of the queue adds to the contexts of handlers. */
  readonly added?: AddedContext | undefined;
  /** Runs what the app has written in an async context of its own. @default in that of the caller */
  readonly inContext?: InContext;
  /** Throws when `complete` must not run in this transaction. */
  readonly checkTransaction?: (tx: Executor) => Promise<void>;
  /** Called when an attempt begins; absent in `runNext`. */
  readonly onBegin?: (attempt: Attempt) => void;
  /** Called with what became of an attempt that was concluded; only where there are metrics. */
  readonly onEnd?: ((ended: EndedAttempt) => void) | undefined;
  /** Called with a job that has left the queue, whatever its end; absent in `runNext`. */
  readonly onJobEnd?: (job: ClaimedJob) => void;
  /** Called with what a handler has thrown that was left behind because it waits; absent in `runNext`. */
  readonly onLeftThrown?: (attempt: Attempt, error: unknown) => void;
  /** Called with what a handler gives to `job.progress`; absent in `runNext`. */
  readonly onProgress?: (attempt: Attempt, value: unknown) => void;
}

/**
 * How far an attempt is. Any other move changes nothing: what waits stays parked though it is told to end,
 * and what is over stays so.
 *
 * | from | by | to |
 * |---|---|---|
 * | claimed | `begin`: its handler is about to be called | running |
 * | running | `noteReturned`: the handler has returned, and its waits hold up nothing | returned |
 * | claimed, running | `wait`: the handler waits, and is left where it is | parked |
 * | claimed, running, returned | `end`, or a moment after `interrupt`: the worker waits no longer | left |
 * | all | `close`: the outcome is decided | over |
 *
 * What an attempt was told (a cancel, a stop, its `reason`) is not a stage, since its handler may go on. One
 * that was left before it began may begin all the same, and ends at once.
 */
type Stage = 'claimed' | 'running' | 'returned' | 'parked' | 'left' | 'over';

/** How long a handler that was told to stop may take to end by itself. */
const INTERRUPT_GRACE_MS = 1_000;

/**
 * One run of a handler for one held job, and the ways to end it from outside. Most attempts are short and end
 * by themselves, so what only the others need is made on demand: an AbortController costs more than the rest.
 */
export class Attempt implements BackoffCaller {
  /** By how much the database's clock was ahead of the process's at the claim, in milliseconds. */
  readonly #aheadMs: number;
  #controller: AbortController | undefined;
  #reason: Error | undefined;
  /** Rejects the promise that `until` has returned. */
  #reject: ((reason: Error) => void) | undefined;
  /** By the process's clock. */
  #beganMs: number | undefined;
  #stage: Stage = 'claimed';
  /** Whether it was told that the worker stops, or may have lost its job. */
  #interrupted = false;
  /** Until when its job waits, once the handler does; `null`: without a limit of time. */
  #waitsMs: number | null | undefined;
  /** What the handler has returned: as a rule a promise. */
  #returned: unknown;
  /** Settles `next` of `around.run` when the handler is left behind. */
  #next: { resolve(wait: Wait): void; reject(reason: Error): void } | undefined;
  /** Whether something is recorded that no later attempt does again, unless that was rolled back. */
  #progress: 'none' | 'made' | 'undone' = 'none';
  #cancelReason: string | undefined;
  #completion: Completion | undefined;
  /** What the handler has left under way, once it is over; most have nothing that could be. */
  #underWay: (() => Promise<void> | undefined) | undefined;
  /** Is told that the handler is left behind, and why. */
  #onLeft: ((reason: Error) => void) | undefined;
  /**
   * How far `Beginnings` has recorded it; `undefined` once its handler is called, or if it is not precious.
   */
  recording: 'claimed' | 'recording' | 'recorded' | undefined;
  /** Whether the one behind it in its group was let go on at the end of its handler. */
  wentOn = false;
  /** Its place among those that run. */
  placeRunning = -1;
  /** Its place among those whose outcome is being written. */
  placeUnsettled = -1;
  /** Since when it has waited for a slot of its own, by the monotonic clock. */
  waitsSinceMs = Number.POSITIVE_INFINITY;
  /** The call that it shares with others, if its handler is a batch handler. */
  batch: BatchCall | undefined;

  constructor(
    readonly job: ClaimedJob,
    readonly handler: Handler,
    readonly environment: AttemptEnvironment,
  ) {
    this.#cancelReason = job.cancelReason ?? undefined;
    // Not asked again: a listener may change the date, which all jobs of a claim share.
    this.#aheadMs = job.claimedAt.getTime() - performance.now();
  }

  /** The handler's own, where listeners see that of the job: secrets may be added to it. */
  get payload(): unknown {
    const { payload } = this.job;
    return this.environment.showsJobs?.() ? copyJson(payload) : payload;
  }

  /** Whether nothing about its beginning is left to be recorded. */
  get mayBegin(): boolean {
    return this.recording === undefined || this.recording === 'recorded';
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

  /** In how many milliseconds its job is due again while the handler waits; `undefined`: it does not. */
  get waitsMs(): number | null | undefined {
    return this.#waitsMs;
  }

  /** Whether something is around its handler, which goes on to its end when the handler waits. */
  get isSurrounded(): boolean {
    return this.#next !== undefined;
  }

  get began(): boolean {
    return this.#beganMs !== undefined;
  }

  /** When it began, by the database's clock; `undefined` when it did not. */
  get beganAt(): Date | undefined {
    if (this.#beganMs === undefined) return undefined;
    return new Date(this.#beganMs + this.#aheadMs);
  }

  begin(): void {
    this.#beganMs = performance.now();
    if (this.#stage === 'claimed') this.#stage = 'running';
    this.environment.onBegin?.(this);
  }

  /** Whether the job's end was requested. */
  get unwanted(): boolean {
    return this.#cancelReason !== undefined;
  }

  /** Whether a handler runs that may still write about its job. */
  get open(): boolean {
    return this.#stage !== 'over' && !this.completeRan;
  }

  /** Whether `complete(tx)` has ended the job, provided that its transaction commits. */
  get completeRan(): boolean {
    return this.#completion?.ran ?? this.batch?.hasCompleted(this) ?? false;
  }

  get holder(): Holder {
    return { queue: this.job.queue, workerId: this.environment.workerId };
  }

  get facts(): AttemptFacts {
    const { maxAttempts } = this.job;
    // What is not repeated was worth its attempts: those before it are forgotten.
    const attempt = this.#progress === 'made' ? 1 : this.job.attempt;
    const { backoff, keepResult } = this.handler.job;
    const { untilDeadlineMs } = this;
    return {
      attempt,
      maxAttempts,
      backoff,
      keepResult,
      caller: this,
      timing: this,
      cancelReason: this.#cancelReason,
      unbegun: !this.began,
      untilDeadlineMs,
    };
  }

  /**
   * Runs the handler. A promise for its result rejects as soon as the attempt is ended from outside.
   * @throws what a handler throws that is not an async function
   */
  run(payload: unknown): unknown {
    const { handler } = this;
    if (handler.batch !== undefined) {
      // In `runNext` a job is alone.
      this.batch ??= batchCallOf(handler, [this]);
      return this.until(this.batch.enter(this, payload));
    }
    const around = this.environment.around?.run;
    const context = new Context(this, payload);
    if (around === undefined) return this.until(this.#call(handler, context));
    const call = () =>
      new Promise<unknown>((resolve, reject) => {
        // Of a handler that waits, or hangs, nothing may come any more.
        this.#next = { resolve, reject };
        new Promise((called) => called(this.#call(handler, context))).then(resolve, reject);
      });
    // When the function around it throws, the handler that is left behind is told so.
    const onLeft = (error: unknown) => {
      // It is not over, so nothing says what it leaves.
      this.#underWay = undefined;
      this.#abort(
        error instanceof Error ? error : new QueueError('around.run threw no Error', { cause: error }),
      );
    };
    return this.until(goAround({ name: 'around.run', around, argument: context, step: call, onLeft }));
  }

  #call(handler: JobHandler, context: Context): unknown {
    this.checkOpen();
    const returned = handler.run(context);
    // A query of Drizzle is sent each time that its `then` is called.
    this.#returned = isPromise(returned) ? Promise.resolve(returned) : returned;
    return this.#returned;
  }

  /** The result of one stage of the attempt; rejects as soon as the attempt is ended from outside. */
  until<T>(answer: T | PromiseLike<T>): T | Promise<T> {
    if (!isPromise(answer)) return answer;
    return new Promise((resolve, reject) => {
      // A handler that was left behind may still reject; this promise is settled by then, so that has no
      // effect.
      answer.then(resolve, reject);
      if (this.isLeft && this.#reason !== undefined) return reject(this.#reason);
      // Waits are nested: `complete` waits for its schema while the attempt waits for the handler.
      const outer = this.#reject;
      this.#reject =
        outer === undefined
          ? reject
          : (reason) => {
              outer(reason);
              reject(reason);
            };
    });
  }

  /** Ends the attempt at once: aborts its signal with `reason`, with which `until` rejects. */
  end(reason: Error): void {
    this.#abort(reason);
    this.#leave();
  }

  /** Ends the attempt because its job is lost. One that has completed it, and goes on, has lost nothing. */
  lose(): void {
    if (this.open) this.end(new LeaseLostError(this.job.kind, this.job.id));
  }

  /** Ends the attempt because its job may be another worker's by now. If it is not, the job is given back. */
  forsake(): void {
    if (!this.open || this.#interrupted) return;
    this.#interrupted = true;
    const { kind, id } = this.job;
    this.end(
      new LeaseLostError(
        kind,
        id,
        'the database has not answered for so long that another worker may have claimed it',
      ),
    );
  }

  /** Ends the attempt because the worker stops; the handler gets a moment to return by itself. */
  interrupt(reason: Error): void {
    if (this.#stage === 'over' || this.#interrupted) return;
    this.#interrupted = true;
    this.#abort(reason);
    setLooseTimeout(() => this.#leave(), INTERRUPT_GRACE_MS);
  }

  /**
   * Ends the attempt because its handler waits: the job is due again after `delayMs`, or when something
   * unparks it. The handler is left where it is, and its signal is not aborted: nothing of it runs any more.
   */
  wait(delayMs: number | null): void {
    // Also after a `complete(tx)`, which may have been rolled back: the handler would hold its slot for ever.
    if (this.#stage !== 'claimed' && this.#stage !== 'running') return;
    this.#stage = 'parked';
    this.#waitsMs = delayMs;
    if (isPromise(this.#returned)) {
      this.#returned.then(undefined, (error) => this.environment.onLeftThrown?.(this, error));
    }
    // What is around the handler goes on to its end, and the attempt with it.
    if (this.#next !== undefined) this.#next.resolve(new Wait(delayMs));
    else this.#reject?.(new QueueError(`Job ${this.job.id} ('${this.job.kind}') waits`));
  }

  endsAfter(underWay: () => Promise<void> | undefined): void {
    this.#underWay = underWay;
  }

  onLeft(told: (reason: Error) => void): void {
    this.#onLeft = told;
  }

  /**
   * What the handler, which has returned or thrown, has left under way; `undefined`: nothing that the attempt
   * waits for. Rejects as soon as the attempt is ended from outside.
   */
  leftUnderWay(): Promise<void> | undefined {
    const underWay = this.isLeft ? undefined : this.#underWay?.();
    return underWay === undefined ? undefined : Promise.resolve(this.until(underWay));
  }

  noteReturned(): void {
    if (this.#stage === 'running') this.#stage = 'returned';
  }

  /** Something is recorded that no later attempt does again. */
  noteProgress(): void {
    if (this.#progress === 'none') this.#progress = 'made';
  }

  /**
   * What it has recorded was rolled back: the next attempt does it again, so its progress does not count.
   * Otherwise a job that records and then fails would be tried for ever.
   */
  undo(): void {
    this.#progress = 'undone';
  }

  /** By the database's clock: the time of its claim, and what has passed since. */
  get databaseNowMs(): number {
    return performance.now() + this.#aheadMs;
  }

  /** In how many milliseconds the `timeoutMs` of its job ends it; `undefined`: it has none. */
  get untilTimeoutMs(): number | undefined {
    const { timeoutMs } = this.handler.job;
    if (timeoutMs === undefined || this.#beganMs === undefined) return undefined;
    return this.#beganMs + timeoutMs - performance.now();
  }

  /** In how many milliseconds its job is too old, by the database's clock; `undefined`: never. */
  get untilDeadlineMs(): number | undefined {
    const { deadlineMs } = this.handler.job;
    if (deadlineMs === undefined) return undefined;
    return this.job.createdAt.getTime() + deadlineMs - this.databaseNowMs;
  }

  get deadlineError(): JobDeadlineError {
    const { kind, id } = this.job;
    return new JobDeadlineError(kind, id, this.handler.job.deadlineMs ?? 0);
  }

  /**
   * Tells the handler that its job is too old, and goes on waiting for it. One that waits is left behind: the
   * job is due at once, and its next attempt is told.
   */
  expire(): void {
    if (this.#stage !== 'over' && this.#waitsMs === undefined) this.#abort(this.deadlineError);
  }

  /** Tells the handler that the job's end was requested, and goes on waiting for it. */
  cancel(reason: string): void {
    if (this.#stage === 'over' || this.#cancelReason !== undefined) return;
    this.#cancelReason = reason;
    this.#abort(new JobCancelledError(this.job.kind, this.job.id, reason));
  }

  #abort(reason: Error): void {
    // The first reason stays, as a signal's does.
    this.#reason ??= reason;
    // Calls what the handler has added to the signal.
    if (this.#controller !== undefined) this.inContext(() => this.#controller?.abort(this.#reason));
    this.batch?.noteTold(this);
  }

  /** Calls something of the app: no `AsyncLocalStorage.enterWith` in it reaches other jobs, or the worker. */
  inContext<T>(task: () => T): T {
    const { inContext } = this.environment;
    return inContext === undefined ? task() : inContext(task);
  }

  /** Calls the backoff of its kind in its own context, and warns where it says more than a job may wait. */
  callBackoff(attempt: number, error: unknown): number {
    const { kind, backoff } = this.handler.job;
    const delayMs = this.inContext(() => backoff(attempt, error));
    // Of an async one, which is not asked for its answer, a rejection would end the process.
    if (isPromise<unknown>(delayMs)) Promise.resolve(delayMs).catch(() => undefined);
    if (delayMs > MAX_BACKOFF_MS) {
      const warning =
        `The backoff of '${kind}' returned ${delayMs} milliseconds. A job waits for a year at most, ` +
        'so it is due again in a year. Return less from the backoff';
      warnOnce(warning, `backoff of ${kind}`);
    }
    return delayMs;
  }

  /** Whether the worker no longer waits for the handler: its job is lost, ended, or out of time. */
  get isLeft(): boolean {
    return this.#stage === 'left' || this.#stage === 'parked';
  }

  /** Stops waiting for the handler. */
  #leave(): void {
    if (this.#stage !== 'parked' && this.#stage !== 'over') this.#stage = 'left';
    if (this.#reason === undefined) return;
    this.#reject?.(this.#reason);
    this.#next?.reject(this.#reason);
    this.batch?.leave(this);
    this.#onLeft?.(this.#reason);
  }

  report(value: unknown): void {
    if (this.open) this.environment.onProgress?.(this, value);
  }

  async complete(tx: Transaction, output: unknown): Promise<void> {
    this.#completion ??= new Completion(this);
    await this.#completion.complete(tx, output);
  }

  /** The attempt's end is decided: see `overError`. */
  close(): void {
    this.#stage = 'over';
  }

  /** Why `complete` is refused, and in `runNext` the context's `db`: the attempt's end is decided. */
  get overError(): LeaseLostError | undefined {
    const { kind, id } = this.job;
    return this.#stage === 'over' ? new LeaseLostError(kind, id, 'this attempt is already over') : undefined;
  }

  /** @throws why the attempt was ended, or LeaseLostError when its end is decided */
  checkOpen(): void {
    const error = this.overError ?? (this.isLeft ? this.#reason : undefined);
    if (error !== undefined) throw error;
  }
}
