import type { JobDefinition } from '../../../core/job/definition.ts';
import type { Stored } from '../../../core/job/stored.ts';
import type { Database, Transaction } from '../../../core/sql/executor.ts';
import type {
  Child,
  ChildArguments,
  ChildEnd,
  ChildEntry,
  ChildOptions,
  Children,
  EndsOf,
  OutputOf,
  OutputsOf,
  ParentCounts,
} from './child.ts';
import type { SignalDefinition, SignalValue } from './define-signal.ts';
import type { FirstOf, FirstOptions, FirstSources } from './first.ts';

/** An output as later runs of the handler get it: after it was stored as JSON. Nothing stays nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: what a function that returns nothing has.
export type StepOutput<T> = [T] extends [void] ? undefined : Stored<T>;

/** The transaction of a handler's `db`. */
export type StepTransaction<TDb> = TDb extends {
  transaction(run: (tx: infer TTransaction) => Promise<unknown>): unknown;
}
  ? TTransaction
  : Transaction;

/** What the function of a step is told. */
export interface StepInfo {
  /** Aborted with the handler's own signal, and when the `timeoutMs` of the step is over. */
  readonly signal: AbortSignal;
  /** `<id of the job>:<name>`, the same in all attempts: for services that ignore a repeated call. */
  readonly idempotencyKey: string;
}

/** Options of `step.run`. */
export interface StepOptions<T> {
  /**
   * How often the step may fail, 1–10,000; then it has failed for good: {@link StepFailedError}, now and in
   * each later run. @default as often as the job has attempts, and then the job is discarded
   */
  readonly attempts?: number | undefined;
  /** How long one try may take, in milliseconds, at least 1. @default as long as the job's own `timeoutMs` */
  readonly timeoutMs?: number | undefined;
  /** What `step.undoAll` calls to take back what the step has done; at least once. @default nothing */
  readonly undo?: ((output: StepOutput<T>, info: StepInfo) => unknown) | undefined;
}

/** Options of `step.transaction`. */
export interface StepTransactionOptions<T, TTransaction> {
  /** What `step.undoAll` calls, in a transaction that records it: exactly once. @default nothing */
  readonly undo?: ((tx: TTransaction, output: StepOutput<T>) => unknown) | undefined;
}

/** Options of `step.waitForSignal`. */
export interface WaitForSignalOptions {
  /** How long it waits, in milliseconds, up to 365 days. @default without a limit */
  readonly timeoutMs?: number | undefined;
  /** The name of the step; needed where a handler waits for one signal twice. @default that of the signal */
  readonly name?: string | undefined;
}

/** Options of `step.token`. */
export interface TokenOptions {
  /**
   * For how long it can be redeemed, in milliseconds from its first making, by the database's clock: at least
   * 1, at most 365 days. @default for as long as the job is live
   */
  readonly expiresInMs?: number | undefined;
  /**
   * Which token it is, where a handler makes two for one signal: each can be redeemed once. With
   * `expiresInMs` also the name of the step. @default `token: ` and the name of the signal
   */
  readonly name?: string | undefined;
}

/** A step that is recorded by a call of its own, from `step.begin`. */
export interface OpenStep<T> {
  /** Whether an earlier attempt has recorded it. */
  readonly done: boolean;
  /** What was recorded; `undefined` before that. */
  readonly output: StepOutput<T> | undefined;
  /**
   * Records it; returns the output as later attempts get it.
   * @throws LeaseLostError when this worker no longer holds the job
   */
  record(output: T): Promise<StepOutput<T>>;
}

/**
 * The steps of a handler: what it does in its middle, recorded so that no later attempt does it again. The
 * handler runs from its start after each failure and each wait, and gets what is recorded by the name of each
 * step. Code between the steps runs again, so keep it free of effects.
 *
 * A name stands for one step of the job; a second step with it is a {@link DuplicateStepError}. Only the
 * attempt that holds the job records a step; another gets a `LeaseLostError`. Steps cannot be nested.
 */
export interface Step<TDb = Database, TOwn = unknown> {
  /**
   * Runs a function, and records what it returns: any JSON value of at most 1 MB, or nothing. It runs at
   * least once, and not again once it is recorded. What it throws fails the attempt.
   *
   * ```ts
   * const charge = await step.run('charge', ({ signal }) => payments.charge(orderId, { signal }));
   * ```
   *
   * @throws StepFailedError when it has failed as often as its `attempts` allow
   * @throws StepLimitError for an output above 1 MB, or the 10,001st step of a job
   */
  run<T>(name: string, run: (info: StepInfo) => T | Promise<T>): Promise<StepOutput<T>>;
  run<T>(
    name: string,
    options: StepOptions<NoInfer<T>>,
    run: (info: StepInfo) => T | Promise<T>,
  ): Promise<StepOutput<T>>;

  /**
   * Runs a function in a transaction of its own, which also records the step: what it writes takes effect
   * exactly once. In `runNext` it is a savepoint.
   *
   * @throws LeaseLostError when this worker no longer holds the job; nothing is written then
   */
  transaction<T>(name: string, run: (tx: StepTransaction<TDb>) => Promise<T>): Promise<StepOutput<T>>;
  transaction<T>(
    name: string,
    options: StepTransactionOptions<NoInfer<T>, StepTransaction<TDb>>,
    run: (tx: StepTransaction<TDb>) => Promise<T>,
  ): Promise<StepOutput<T>>;

  /**
   * A step without a function, for loops that record where they are: the turns of an agent, the cursor of an
   * import. One that is begun and not recorded is nothing.
   */
  begin<T>(name: string): Promise<OpenStep<T>>;

  /**
   * Waits this many milliseconds from its first try, by the database's clock, up to 365 days. Meanwhile the
   * job holds no slot, no connection and no attempt.
   */
  sleep(name: string, delayMs: number): Promise<void>;
  /**
   * Waits until a time, by the database's clock. As {@link Step.sleep}; a job whose time is more than 365
   * days ahead is run once in these, and waits on.
   */
  sleepUntil(name: string, date: Date): Promise<void>;

  /**
   * Waits for the next signal of a name that was sent to this job, before, during or after the wait; returns
   * its value. As {@link Step.sleep}, the job holds nothing meanwhile. With `timeoutMs` it returns
   * `undefined` when none came in time; one that comes later goes to the next wait for it. Whether there is a
   * limit is what the running code says, also for a job that has begun to wait under another version.
   *
   * @throws InvalidSignalError when the stored value no longer fits the signal's schema
   */
  waitForSignal<TSignal extends SignalDefinition>(
    signal: TSignal,
    options: WaitForSignalOptions & { readonly timeoutMs: number },
  ): Promise<SignalValue<TSignal> | undefined>;
  waitForSignal<TSignal extends SignalDefinition>(
    signal: TSignal,
    options?: WaitForSignalOptions,
  ): Promise<SignalValue<TSignal>>;

  /**
   * Waits for the first of several: signals, children and times. As {@link Step.sleep}, the job holds nothing
   * meanwhile. Of several that are there already, the one that stands first is taken.
   *
   * ```ts
   * const first = await step.first('decision', {
   *   answered: approval,
   *   parcelled: child,
   *   late: { delayMs: 3 * 86_400_000 },
   * });
   * if (first.key === 'answered') notify(first.value.by);
   * ```
   *
   * The others stay as they are: a signal that comes later goes to the next wait for it, and a child goes on,
   * unless `cancelRest` is given.
   *
   * Under concurrency: one of them is recorded, in one commit, and each later run of the handler gets the
   * same. A signal that is not taken is not received.
   *
   * @throws ChildFailedError when the first is a child that was discarded or cancelled
   * @throws InvalidSignalError when the stored value no longer fits the signal's schema
   */
  first<const TSources extends FirstSources>(
    name: string,
    sources: TSources,
    options?: FirstOptions,
  ): Promise<FirstOf<TSources>>;

  /**
   * A signed text for a link, by which someone outside sends a signal to this job: see
   * `queue.workflows.redeem`. It can be redeemed once, and is the same in each run of the handler. With
   * `expiresInMs` a step records the time. All who have the token can redeem it, with any value that the
   * schema of the signal accepts.
   *
   * ```ts
   * const token = await step.token(approval, { expiresInMs: 3 * 86_400_000 });
   * await step.run('ask', () => mailer.send(clerk, `https://shop.test/approve?token=${token}`));
   * const answer = await step.waitForSignal(approval);
   * ```
   *
   * @throws QueueError where `workflowsIn` was given no `secrets`
   */
  token(signal: SignalDefinition, options?: TokenOptions): Promise<string>;

  /**
   * Enqueues a job, once: its step is recorded in the transaction that inserts it. It may be in any queue.
   * Wait for it with {@link Step.waitForJob}, or with others with {@link Step.all}. When this job is
   * cancelled, so is the child, unless it is `detached`.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent; a TypeError also where the
   * definition keeps no result, since nothing could be said of its end
   */
  enqueue<TJob extends JobDefinition>(
    name: string,
    job: TJob,
    ...args: ChildArguments<TJob, TOwn>
  ): Promise<Child<TJob>>;

  /** As {@link Step.enqueue}, up to 10,000 jobs of one kind, to wait for together. */
  enqueueMany<TJob extends JobDefinition>(
    name: string,
    job: TJob,
    entries: readonly ChildEntry<TJob, TOwn>[],
    options?: ChildOptions,
  ): Promise<Children<TJob>>;

  /**
   * Enqueues jobs, once, as members of the flow or the batch that this job is a member of: what waits for
   * this job waits for them, too. Up to 10,000 of one kind; returns their ids, in order. The job need not
   * wait for them, and may end before. The last job of a batch, and a job that a step has enqueued, cannot do
   * this.
   *
   * ```ts
   * const links = await step.run('read', () => linksOf(payload.url));
   * await step.addToFlow('links', crawl, links.map((url) => ({ payload: { url } })));
   * ```
   *
   * Under concurrency: the flow cannot end between this job and those, whichever process ends it. In a flow
   * that is being cancelled they end with the others.
   *
   * @throws NonRetryableError when the job does not belong to a flow or a batch that can grow
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   */
  addToFlow<TJob extends JobDefinition>(
    name: string,
    job: TJob,
    entries: readonly ChildEntry<TJob, TOwn>[],
  ): Promise<readonly number[]>;

  /**
   * Waits until a child has ended; returns its output. As {@link Step.sleep}, this job holds nothing
   * meanwhile. The step has the name of the child's, with `: end` behind it.
   *
   * @throws ChildFailedError when the child was discarded or cancelled
   * @throws NonRetryableError for a child of another job that has not ended: its end would not wake this one
   */
  waitForJob<TJob extends JobDefinition>(child: Child<TJob>): Promise<OutputOf<TJob>>;

  /**
   * Waits for several children; returns their outputs, in their order. All together may have 1 MB.
   *
   * @throws ChildFailedError as soon as one was discarded or cancelled; the others go on
   */
  all<TJob extends JobDefinition>(name: string, children: Children<TJob>): Promise<OutputOf<TJob>[]>;
  all<const TChildren extends readonly Child[]>(
    name: string,
    children: TChildren,
  ): Promise<OutputsOf<TChildren>>;

  /** Waits until several children have ended, in whatever way; returns how, in their order. */
  allEnded<TJob extends JobDefinition>(name: string, children: Children<TJob>): Promise<ChildEnd<TJob>[]>;
  allEnded<const TChildren extends readonly Child[]>(
    name: string,
    children: TChildren,
  ): Promise<EndsOf<TChildren>>;

  /**
   * How those jobs of a kind have ended for which this job has waited before it began, in the order in which
   * they were added: its `after` in a flow, or the members of its batch. It is not a step: each run reads all
   * of their results at once, so after more than some 10,000 jobs ask `parentCounts`.
   */
  parents<TJob extends JobDefinition>(job: TJob): Promise<ChildEnd<TJob>[]>;

  /** How many jobs of any kind this job has waited for before it began, and how they ended. It is no step. */
  parentCounts(): Promise<ParentCounts>;

  /**
   * Calls the `undo` of each step that is recorded, the last first, each as a step of its own. Call it where
   * the job fails for good, and throw the error on. It is recorded first that the job is being undone: a
   * later attempt comes back to this call, and goes on where it was.
   *
   * It waits for steps that are under way beside it, and undoes them as well. Meanwhile no other step begins:
   * its promise rejects with a `NonRetryableError` once all is undone.
   *
   * @throws NestedStepError inside of a step
   */
  undoAll(error: unknown): Promise<void>;
}
