import type { JobDefinition } from '../../../core/job/definition.ts';
import { describeThrown } from '../../../core/job/describe-error.ts';
import { checkText, MAX_NAME_BYTES, utf8Bytes } from '../../../core/job/limits.ts';
import type { NewJob } from '../../../core/job/new-job.ts';
import { toStoredJson, UnstorableValueError } from '../../../core/job/stored-json.ts';
import { type AsyncContext, asyncContext, nextTurn } from '../../../core/runtime.ts';
import type { Transaction } from '../../../core/sql/executor.ts';
import { transact } from '../../../core/sql/transact.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { AttemptAddedTo } from '../../../core/worker/run/added-context.ts';
import {
  JobCancelledError,
  JobDeadlineError,
  LeaseLostError,
  NonRetryableError,
  QueueError,
} from '../../../errors.ts';
import type { MemberEnd } from '../../batches/queries/find-ends.ts';
import type { Waited } from '../../batches/queries/find-waited.ts';
import type { ReopenReturned } from '../../batches/queries/reopen-returned.ts';
import type { WaitForBatches } from '../../batches/queries/wait-for-batches.ts';
import type { ChildEntry } from '../job/child.ts';
import type { StepInfo, StepOptions } from '../job/step.ts';
import {
  DuplicateStepError,
  NestedStepError,
  StepFailedError,
  StepLimitError,
  StepMismatchError,
} from '../job/step-errors.ts';
import { END, isUndo, MAX_MADE_NAME_BYTES, TOKEN, UNDO } from '../job/step-names.ts';
import type { StepEnd, StepObservation, StepObserver } from '../job/step-observer.ts';
import type { FoundStep } from '../queries/find-steps.ts';
import type { Received, SignalToReceive } from '../queries/receive-signal.ts';
import type { RecordedStep, StepToRecord } from '../queries/record-steps.ts';
import type { StepErrorRecord, StepKind } from '../schema/queue-steps.ts';
import type { TokenClaims } from '../tokens/tokens.ts';
import { LockedElsewhere } from './locked-elsewhere.ts';
import { Turns } from './turns.ts';

/** A step that was recorded before. One that only a test has given may be of any kind. */
export interface KnownStep extends Omit<FoundStep, 'kind'> {
  readonly kind: StepKind | undefined;
}

/** One that is over. */
export type OverStep = KnownStep & { readonly endedAt: Date };

/** How the steps of one attempt reach the database. */
export interface StepStore {
  /** Runs a transaction of the handler's, where all that steps do shares one connection. */
  alone?<T>(transaction: () => Promise<T>): Promise<T>;
  /** From now on all is tried again although the job is to end: it is being undone. */
  noteUndoing?(): void;
  find(): Promise<readonly KnownStep[]>;
  /** `undefined`: the job is no longer held. */
  record(step: StepToRecord): Promise<RecordedStep | undefined>;
  /** The same in a transaction of the handler's. */
  recordIn(tx: Transaction, step: StepToRecord): Promise<RecordedStep | undefined>;
  /** The same, and cancels the members of these batches in its transaction. */
  recordAndCancel(step: StepToRecord, batchIds: readonly number[]): Promise<RecordedStep | undefined>;
  /**
   * `undefined`: the job is no longer held.
   *
   * @param unwanted batches whose members are cancelled where it receives one, in its transaction
   */
  receive(signal: SignalToReceive, unwanted?: readonly number[]): Promise<Received | undefined>;
  check(
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
    step: string,
  ): Promise<readonly NewJob[]>;
  /** Inserts and records them; `undefined`: the job is no longer held. */
  enqueue(children: ChildrenToEnqueue): Promise<EnqueuedChildren | undefined>;
  /**
   * Whether there is something to wait for; `undefined`: the job is no longer held; `foreign`: the job would
   * not be woken, since it has not enqueued what it asks for.
   */
  waitFor(wait: WaitForBatches): Promise<boolean | 'foreign' | undefined>;
  /** Which members of batches that are over live again: from now on these can be waited for. */
  reopen(returned: ReopenReturned): Promise<ReadonlySet<number>>;
  /** How the members of batches have ended. */
  ends(batchIds: readonly number[], kind?: string): Promise<readonly MemberEnd[]>;
  /** What the job has waited for before it began. */
  waited(): Promise<Waited>;
  /** Tells of an undo that has failed although its job is not run again: nothing else has its error. */
  undoFailed(step: string, error: unknown): void;
  /** What a test has given for a step, as one of the kind that it is in the code. @throws TypeError */
  fit?(given: KnownStep, kind: StepKind): KnownStep;
  token(claims: TokenClaims): Promise<string>;
}

/** Jobs to enqueue as children of a job. */
export interface ChildrenToEnqueue {
  readonly step: string;
  readonly jobs: readonly NewJob[];
  readonly entries: readonly ChildEntry<JobDefinition>[];
  /** Children of the job, which end with it or not, or members of the batch that it is in. */
  readonly as: 'parent' | 'detached' | 'members';
  /** What is recorded of them in the transaction that inserts them. */
  toStep(children: EnqueuedChildren): StepToRecord;
}

/** The same, enqueued. */
export interface EnqueuedChildren {
  readonly batch: number;
  readonly ids: readonly number[];
}

/** One year. */
export const MAX_WAIT_MS = 365 * 24 * 3_600_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_STEPS = 10_000;
const MAX_TRACE = 200;
/** How long code between two steps may take before there seems to be none: it cannot be seen. */
const BETWEEN_MS = 1_000;
/** The step whose function the current code is part of. Asked for once: a browser has none. */
let insideSteps: AsyncContext<InsideStep> | undefined;

/** The function of a step may run other jobs, as `drain` does: their steps are not inside of it. */
interface InsideStep {
  readonly of: AttemptSteps;
  readonly name: string;
}

/** A wait of the handler. */
interface LeftWait {
  /** When it is over, by the monotonic clock. */
  untilMs: number;
  reject(reason: unknown): void;
}

export type Run<T> = (info: StepInfo) => T | Promise<T>;
export type RunIn<T> = (tx: Transaction) => Promise<T>;

/**
 * The steps of one attempt, whatever they do: their names, what earlier attempts have recorded of them, and
 * the end of the attempt once all that is left of the handler waits. It reads what is recorded when the first
 * step begins.
 */
export class AttemptSteps {
  readonly attempt: AttemptAddedTo;
  readonly store: StepStore;
  readonly #observer: StepObserver | undefined;
  /** Of the steps that are observed, by their names. */
  readonly #observations = new Map<string, StepObservation>();
  readonly #inside: AsyncContext<InsideStep> | undefined;
  readonly #names = new Set<string>();
  /** How many signals this job has received, by their name. */
  readonly #received = new Map<string, number>();
  /** The steps of this attempt that wait for a signal, by its name. */
  readonly #waitingFor = new Map<string, Set<string>>();
  readonly #receiving = new Turns<string>();
  /** Nothing can be recorded yet. */
  #isFirst: boolean;
  #memo: Promise<ReadonlyMap<string, KnownStep>> | undefined;
  /** When the memo was there, by the monotonic clock. */
  #readMs = 0;
  /** How many steps the job has, without undos: recorded, or begun by this attempt. */
  #count = 0;
  /** Steps that are neither over nor waiting: while there is one, the attempt goes on. */
  #active = 0;
  readonly #waits: LeftWait[] = [];
  /** One of them has thrown why the job is to end. */
  #isTold = false;
  /** A step has thrown, so a `catch` of the handler may run. */
  #hasThrown = false;
  /** Of the last look whether all that is left of the handler waits. */
  #look = 0;
  #isUndoing = false;
  /** Aborted when the next step begins. */
  #coming: AbortController | undefined;
  /** While `undoAll` is under way. */
  #undoing: { readonly reason: StepErrorRecord; readonly over: Promise<void> } | undefined;
  /** No step begins any more: the handler is over, or all that was left of it waited. */
  #isClosed = false;
  /** The handler has returned or thrown: nothing awaits a step that is still under way, as a rule. */
  #isHandlerOver = false;
  /** Resolve what `idle` has returned. */
  readonly #onIdle: (() => void)[] = [];

  constructor(attempt: AttemptAddedTo, store: StepStore, observer?: StepObserver) {
    insideSteps ??= asyncContext<InsideStep>();
    this.#inside = insideSteps;
    this.attempt = attempt;
    this.store = store;
    this.#observer = observer;
    this.#isFirst = isFirstClaim(attempt);
    attempt.endsAfter(() => this.#leave());
    if (observer !== undefined) attempt.onLeft((reason) => this.#endObservations(reason));
  }

  /**
   * The handler is over. What steps have begun is recorded before the attempt ends: a step beside one that
   * has failed need not be done again.
   */
  #leave(): Promise<void> | undefined {
    this.#isClosed = true;
    this.#isHandlerOver = true;
    return this.idle();
  }

  /** Resolves once all steps that are under way are over or wait; `undefined`: they are. */
  idle(): Promise<void> | undefined {
    if (this.#active === 0) return undefined;
    return new Promise((resolve) => {
      this.#onIdle.push(resolve);
    });
  }

  /**
   * Undoes what is recorded. From now on steps are begun although the job is to end, but none beside this:
   * what that does would not be undone.
   */
  async undo(reason: StepErrorRecord, task: () => Promise<void>): Promise<void> {
    const isFirst = !this.#isUndoing;
    this.#isUndoing = true;
    this.store.noteUndoing?.();
    const undone = task();
    this.#undoing = { reason, over: undone.catch(() => undefined) };
    try {
      await undone;
    } finally {
      this.#undoing = undefined;
      // What they wait for may never come. In the next run of the handler they throw.
      if (isFirst) for (const wait of this.#waits) wait.untilMs = 0;
    }
  }

  /**
   * Waits for code beside `undoAll` that is still to come to steps of an earlier attempt. What stands between
   * them takes its time; code that was removed never comes.
   */
  async replayBeside(): Promise<void> {
    const memo = await this.read();
    while ([...memo.values()].some((step) => this.#isToCome(step, memo))) {
      const coming = new AbortController();
      this.#coming = coming;
      await this.busy(() => this.#betweenSteps(coming.signal));
      if (!coming.signal.aborted) return;
    }
  }

  /** Lets code between two steps run; what comes after it needs time of the attempt, too. */
  async #betweenSteps(over: AbortSignal): Promise<void> {
    const { untilTimeoutMs = Number.POSITIVE_INFINITY } = this.attempt;
    await sleep(Math.max(0, Math.min(BETWEEN_MS, untilTimeoutMs / 2)), over);
  }

  /** Whether this attempt has not come to a step that may have to be undone. */
  #isToCome(step: KnownStep, memo: ReadonlyMap<string, KnownStep>): boolean {
    const { name, kind, error } = step;
    if (!isOver(step) || error !== null || (kind !== 'run' && kind !== 'transaction')) return false;
    return !isUndo(name) && !memo.has(`${UNDO}:${name}`) && !this.#names.has(name);
  }

  /** @throws `error`, for which a handler that was left behind comes too late to undo */
  async checkNotLeft(error: unknown): Promise<void> {
    if (!this.#isClosed) return;
    if (this.#isHandlerOver) await never();
    throw error;
  }

  /** Why a step was not undone is told where the job is not run again: its end has another reason. */
  undoFailed(step: string, error: unknown): void {
    if (error instanceof LeaseLostError || this.#toldWhy === undefined) return;
    this.store.undoFailed(step, error);
  }

  /** Why the job is not run again, where the handler is told so. */
  get #toldWhy(): Error | undefined {
    const { reason } = this.attempt.signal;
    return reason instanceof JobCancelledError || reason instanceof JobDeadlineError ? reason : undefined;
  }

  /** A step that has failed may be begun again by this attempt. Its transaction may have committed. */
  mayComeAgain(name: string): void {
    this.#names.delete(name);
    this.#memo = undefined;
    this.#isFirst = false;
  }

  /** The observation of a step is over, unless it was before: it waits, or the attempt has ended. */
  endObservation(name: string, end: StepEnd = 'done', error?: unknown): void {
    const observation = this.#observations.get(name);
    this.#observations.delete(name);
    observation?.end(end, error);
  }

  /** The attempt has ended, and a step that hangs would never be seen. */
  #endObservations(reason: Error): void {
    for (const name of [...this.#observations.keys()]) {
      try {
        this.endObservation(name, 'failed', reason);
      } catch {
        // What it throws would fail the attempt, which has failed.
      }
    }
  }

  /**
   * One step, from its name on.
   *
   * @param ends when its observation does: with `run`, or later, by what that returns
   */
  async step<T>(
    name: string,
    kind: StepKind,
    run: (found: KnownStep | undefined) => Promise<T>,
    ends: 'with it' | 'later' = 'with it',
  ): Promise<T> {
    // A name that is made of another one may be longer: that one was checked.
    checkText('step: name', name, MAX_MADE_NAME_BYTES);
    const undoes = isUndo(name);
    const isMade =
      (undoes && this.#isUndoing) ||
      (kind === 'wait' && name.endsWith(END)) ||
      (kind === 'run' && name.startsWith(TOKEN));
    if (!isMade) checkText('step: name', name, MAX_NAME_BYTES);
    if (undoes && !this.#isUndoing)
      throw new TypeError(`step '${name}': this name is taken: undoAll uses it`);
    // Left behind by waits beside it, or by the end of the handler: it goes on in the next run.
    if (this.#isClosed) return await never();
    this.checkOutside(name);
    const { job } = this.attempt;
    if (this.#names.has(name)) throw new DuplicateStepError(job.kind, name);
    this.#names.add(name);
    this.#coming?.abort();
    if (this.#undoing !== undefined && !undoes) await this.#refuse(name, kind, this.#undoing);
    return await this.busy(async () => {
      this.attempt.checkOpen();
      const memo = await this.read();
      const known = memo.get(name);
      const found = known?.kind === undefined && known !== undefined ? this.#fit(known, kind) : known;
      if (found?.kind !== undefined && found.kind !== kind) {
        throw new StepMismatchError(job.kind, name, found.kind, kind);
      }
      const isReplayed = this.#isReplayed(found, kind);
      if (!isReplayed && !this.#isUndoing) this.#checkWanted(memo.get(UNDO)?.error);
      // What is done must be undone, however much that is.
      if (found === undefined && !undoes) this.#countNew();
      const attempt = found === undefined || found.error === null ? 1 : found.attempts + 1;
      const runFound = () => this.#unlessLocked(name, () => run(found));
      if (this.#observer === undefined || isReplayed) return await runFound();
      const observation = this.#observer.begin({
        job: { id: job.id, kind: job.kind, queue: job.queue, attempt: job.attempt },
        name,
        kind,
        attempt,
        signal: this.attempt.signal,
      });
      this.#observations.set(name, observation);
      try {
        const value = await observation.run(runFound);
        if (ends === 'with it') this.endObservation(name, endOf(kind, value));
        return value;
      } catch (error) {
        this.endObservation(name, 'failed', error);
        throw error;
      }
    });
  }

  /** Where another transaction has locked what a step needs, its job is called again at once. */
  async #unlessLocked<T>(name: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof LockedElsewhere)) throw error;
      return await this.wait(name, 0);
    }
  }

  #fit(given: KnownStep, kind: StepKind): KnownStep {
    return this.store.fit?.(given, kind) ?? given;
  }

  /** What an observer leaves with the row of a step. */
  traceOf(name: string): string | undefined {
    const trace = this.#observations.get(name)?.trace;
    return trace === undefined || trace.length > MAX_TRACE ? undefined : trace;
  }

  /** @throws NestedStepError inside of a step, which would be waited for by what waits for it */
  checkOutside(name: string): void {
    const outer = this.#inside?.getStore();
    if (outer?.of === this) throw new NestedStepError(this.attempt.job.kind, name, outer.name);
  }

  /** The end of a sleep is never written, and what comes after one that has passed may have to be undone. */
  #isReplayed(found: KnownStep | undefined, kind: StepKind): boolean {
    return isOver(found) || (kind === 'sleep' && (this.leftMs(found) ?? 1) <= 0);
  }

  /**
   * A step beside `undoAll` begins only if it is replayed. The others are told once all is undone: with that
   * the handler is over, as a rule, and may have left them behind.
   *
   * @throws NonRetryableError
   */
  async #refuse(
    name: string,
    stepKind: StepKind,
    { reason, over }: { readonly reason: StepErrorRecord; readonly over: Promise<void> },
  ): Promise<void> {
    if (this.#isReplayed((await this.read()).get(name), stepKind)) return;
    await over;
    await nextTurn();
    if (this.#isClosed) await never();
    const { kind } = this.attempt.job;
    throw new NonRetryableError(
      `The step '${name}' of '${kind}' does not begin, since the job was being undone: ${reason.message}`,
    );
  }

  /** @throws why no new step is to begin: the job is to end, or is being undone */
  #checkWanted(undoneFor: StepErrorRecord | null | undefined): void {
    this.attempt.signal.throwIfAborted();
    if (undoneFor === null || undoneFor === undefined) return;
    throw new NonRetryableError(undoneFor.message);
  }

  /** What goes on meanwhile is not left behind by waits beside it, nor by the end of the handler. */
  async busy<T>(task: () => Promise<T>): Promise<T> {
    this.#active++;
    try {
      return await task();
    } catch (error) {
      this.#hasThrown = true;
      if (!this.#isToldLate(error)) throw error;
    } finally {
      this.#active--;
      this.#parkWhenIdle();
    }
    return await never();
  }

  /**
   * Whether the end of the attempt has met what a handler that is over has left under way. That says nothing
   * of the handler, and where nothing awaits it, it would end the process as an unhandled rejection.
   */
  #isToldLate(error: unknown): boolean {
    if (!this.#isHandlerOver) return false;
    return error instanceof LeaseLostError || error === this.attempt.signal.reason;
  }

  /** What earlier attempts have recorded, by the names of the steps. */
  read(): Promise<ReadonlyMap<string, KnownStep>> {
    this.#memo ??= this.#readNow();
    return this.#memo;
  }

  async #readNow(): Promise<ReadonlyMap<string, KnownStep>> {
    const isAgain = this.#readMs > 0;
    const steps = this.#isFirst ? [] : await this.store.find();
    // After the answer: a question may wait for a connection, and no wait is to be over before its time.
    this.#readMs = performance.now();
    this.#received.clear();
    for (const { signal, output } of steps) {
      if (signal === null || output === undefined) continue;
      this.#received.set(signal, (this.#received.get(signal) ?? 0) + 1);
    }
    this.#count = steps.filter(({ name }) => !isUndo(name)).length;
    // They are in the order in which they began.
    const trace = isAgain ? undefined : steps.findLast((step) => step.trace !== null)?.trace;
    if (trace !== undefined && trace !== null) this.#observer?.resume(trace);
    return new Map(steps.map((step) => [step.name, step]));
  }

  /** What a step that is over has returned. @throws StepFailedError when it has failed for good */
  outputOf({ name, error, attempts, output }: KnownStep): unknown {
    if (error === null) return output;
    throw new StepFailedError(this.attempt.job.kind, name, attempts, error);
  }

  /**
   * Takes the next signal of a name for a step, or lets the step wait for it. Steps that want the same signal
   * do so one after the other, and one that comes after one that waits does not overtake it: what comes is
   * received in the order of the steps, and the last word in the mailbox is that of the one that waits.
   *
   * @param unwanted batches whose members are cancelled where it receives one
   * @throws LeaseLostError
   */
  async receive(
    wanted: Omit<SignalToReceive, 'id' | 'fence' | 'at' | 'isBehind'>,
    unwanted: readonly number[] = [],
  ): Promise<Received> {
    const { name, signal } = wanted;
    return await this.#receiving.take([signal], async () => {
      const { id, fence } = this.attempt.job;
      const at = this.#received.get(signal) ?? 0;
      const waiting = this.#waitingFor.get(signal) ?? new Set<string>();
      const received = await this.store.receive(
        { ...wanted, id, fence, at, isBehind: waiting.size > 0 },
        unwanted,
      );
      if (received === undefined) throw this.lost();
      if (received.type === 'received') this.#received.set(signal, at + 1);
      if (received.type === 'waiting') this.#waitingFor.set(signal, waiting.add(name));
      return received;
    });
  }

  /** A step does not wait for signals any more: something else has come first. */
  waitsNoLonger(name: string): void {
    for (const waiting of this.#waitingFor.values()) waiting.delete(name);
  }

  /** Calls the function of a step; counts its failures where they are bounded. */
  async tried<T>(
    name: string,
    { attempts, timeoutMs }: Pick<StepOptions<T>, 'attempts' | 'timeoutMs'>,
    found: KnownStep | undefined,
    run: Run<T>,
  ): Promise<T> {
    const startMs = performance.now();
    try {
      return await this.#called(name, timeoutMs, run);
    } catch (error) {
      this.attempt.checkOpen();
      // It was told to stop: that says nothing about the step.
      if (attempts === undefined || this.attempt.signal.aborted) throw error;
      const tried = (found?.attempts ?? 0) + 1;
      const isLast = tried >= attempts || error instanceof NonRetryableError;
      const { id, fence, kind } = this.attempt.job;
      const record = describeThrown(error);
      const recorded = await this.store.record({
        id,
        fence,
        name,
        kind: 'run',
        error: record,
        attempts: tried,
        tookMs: performance.now() - startMs,
        ended: isLast,
      });
      if (recorded === undefined) throw this.lost();
      if (isLast) throw new StepFailedError(kind, name, tried, record, { cause: error });
      throw error;
    }
  }

  async #called<T>(name: string, timeoutMs: number | undefined, run: Run<T>): Promise<T> {
    const { job } = this.attempt;
    // What is undone because the job is cancelled must not be told to stop for that.
    const signal = this.#isUndoing ? new AbortController().signal : this.attempt.signal;
    const idempotencyKey = `${job.id}:${name}`;
    const call = (signal: AbortSignal) => this.within(name, () => run({ signal, idempotencyKey }));
    if (timeoutMs === undefined) return await call(signal);
    const over = new AbortController();
    const end = () => over.abort(signal.reason);
    signal.addEventListener('abort', end);
    const late = new QueueError(`The step '${name}' of '${job.kind}' took longer than ${timeoutMs} ms`);
    const timer = setTimeout(() => over.abort(late), timeoutMs);
    const aborted = new Promise<never>((_, reject) => {
      over.signal.addEventListener('abort', () => reject(over.signal.reason));
    });
    try {
      return await Promise.race([call(over.signal), aborted]);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  }

  /** Calls something that is part of a step: no other step can begin in it. */
  async within<T>(name: string, task: () => T | Promise<T>): Promise<T> {
    return await (this.#inside === undefined ? task() : this.#inside.run({ of: this, name }, task));
  }

  /**
   * Records a step that is over, and with it cancels the members of `unwanted` batches; returns its output as
   * later attempts get it.
   *
   * @throws LeaseLostError
   */
  async record(
    {
      name,
      kind,
      output,
      startMs,
      error,
      attempts,
    }: {
      readonly name: string;
      readonly kind: StepKind;
      readonly output: unknown;
      readonly startMs: number;
      readonly error?: StepErrorRecord | undefined;
      /** How often it was tried. @default 1 */
      readonly attempts?: number | undefined;
    },
    unwanted: readonly number[] = [],
  ): Promise<unknown> {
    const step = { ...this.toRecord(name, kind, output, startMs), error, attempts };
    const recorded =
      unwanted.length === 0
        ? await this.store.record(step)
        : await this.store.recordAndCancel(step, unwanted);
    if (recorded === undefined) throw this.lost();
    this.attempt.noteProgress();
    return step.output === undefined ? undefined : JSON.parse(step.output);
  }

  /** Runs a step in a transaction that records it; as `record`. */
  async transacted<T>(name: string, run: RunIn<T>): Promise<unknown> {
    const startMs = performance.now();
    // One that has run before has been rolled back, or there is no job to record it for.
    const ranBefore = this.attempt.completeRan;
    let refusal: Error | undefined;
    const transacted = async (tx: Transaction) => {
      const output = await this.within(name, () => run(tx));
      if (this.attempt.completeRan && !ranBefore) throw completedIn(name);
      const step = this.toRecord(name, 'transaction', output, startMs);
      this.attempt.checkOpen();
      if ((await this.store.recordIn(tx, step)) === undefined) {
        refusal = ranBefore ? completedIn(name) : this.lost();
        throw refusal;
      }
      return step.output === undefined ? undefined : JSON.parse(step.output);
    };
    const send = () => transact(this.attempt.environment.db, transacted);
    const stored = await (this.store.alone?.(send) ?? send()).catch(async (error: unknown) => {
      if (error !== refusal) throw error;
      // A try before this one had no answer, and has committed after all.
      const recorded = (await this.store.find()).find((step) => step.name === name);
      if (!isOver(recorded)) throw error;
      return this.outputOf(recorded);
    });
    this.attempt.noteProgress();
    return stored;
  }

  /** @throws NonRetryableError for an output that cannot be stored; StepLimitError for a large one */
  toRecord(name: string, kind: StepKind, output: unknown, startMs: number): StepToRecord {
    const { id, fence } = this.attempt.job;
    const json = output === undefined ? undefined : storedOutput(name, output);
    if (json !== undefined && json.length > MAX_OUTPUT_BYTES / 4 && utf8Bytes(json) > MAX_OUTPUT_BYTES) {
      throw new StepLimitError(
        `The output of the step '${name}' is ${utf8Bytes(json)} bytes long; the limit is 1 MB. ` +
          'Store large data elsewhere, and return where it is',
      );
    }
    return { id, fence, name, kind, output: json, tookMs: performance.now() - startMs, ended: true };
  }

  /** One more step begins. @throws StepLimitError */
  #countNew(): void {
    if (++this.#count <= MAX_STEPS) return;
    const { id, kind } = this.attempt.job;
    throw new StepLimitError(
      `Job ${id} ('${kind}') has reached the limit of ${MAX_STEPS} steps. ` +
        'Enqueue a job for each part of the work, or end this one and enqueue the next in complete(tx)',
    );
  }

  /** What a step throws that could not be recorded. */
  lost(): LeaseLostError {
    const { kind, id } = this.attempt.job;
    return new LeaseLostError(kind, id);
  }

  /**
   * Never settles: nothing of the handler runs on, no `catch` and no `finally`. But it rejects where the job
   * is told to end before all that is left of the handler waits.
   */
  wait(name: string, leftMs: number | null): Promise<never> {
    this.endObservation(name, 'waiting');
    return new Promise((_, reject) => {
      const untilMs = leftMs === null ? Number.POSITIVE_INFINITY : performance.now() + leftMs;
      this.#waits.push({ untilMs, reject });
      this.#active--;
      this.#parkWhenIdle();
    });
  }

  #parkWhenIdle(): void {
    if (this.#active > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
    if (this.#waits.length > 0) void this.#park();
  }

  async #park(): Promise<void> {
    const look = ++this.#look;
    // What goes on after a step that has just ended may begin another.
    await nextTurn();
    if (this.#hasThrown && this.#active === 0 && !this.#isClosed) {
      await this.#betweenSteps(new AbortController().signal);
    }
    if (look !== this.#look || this.#active > 0 || this.#isClosed) return;
    if (this.#toldWhy !== undefined && !this.#isUndoing) {
      this.#tell(this.#toldWhy);
      return;
    }
    this.#isClosed = true;
    const leftMs = Math.min(...this.#waits.map(({ untilMs }) => untilMs)) - performance.now();
    this.attempt.wait(leftMs === Number.POSITIVE_INFINITY ? null : Math.max(0, Math.ceil(leftMs)));
  }

  /**
   * A parked job that is to end ends without its handler, which could then undo nothing. The last wait is
   * told, and if the handler goes on to wait, all others.
   */
  #tell(reason: Error): void {
    const told = this.#waits.splice(this.#isTold ? 0 : -1);
    this.#isTold = true;
    this.#active += told.length;
    for (const wait of told) wait.reject(reason);
  }

  /**
   * Runs a step that may wait; what it returns is what the handler awaits, which may come to it late, or
   * never. Why it fails comes from outside: a cancel, a child, a signal. As an unhandled rejection it would
   * end the process, and all other jobs in it.
   */
  awaited<T>(step: () => Promise<T>): Promise<T> {
    const wait = step();
    wait.catch(() => undefined);
    return wait;
  }

  /** In how long a step waits no longer; `undefined` where it has not begun to, or has no such time. */
  leftMs(found: KnownStep | undefined): number | undefined {
    return found?.leftMs === undefined ? undefined : found.leftMs - (performance.now() - this.#readMs);
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

export function isOver(found: KnownStep | undefined): found is OverStep {
  return found !== undefined && found.endedAt !== null;
}

/** @throws NonRetryableError: the next attempt would do the same again, and could not keep it either */
function storedOutput(name: string, output: unknown): string {
  try {
    return toStoredJson(output);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const { message, path } = error.issue;
    const at = path === '' ? '' : ` at ${path}`;
    throw new NonRetryableError(`The output of the step '${name}' cannot be stored${at}: ${message}`);
  }
}

function completedIn(name: string): QueueError {
  return new QueueError(
    `The step '${name}' cannot be recorded: complete(tx) has ended its job. ` +
      'Call complete in a db.transaction of its own, after the last step',
  );
}

function endOf(kind: StepKind, value: unknown): StepEnd {
  return kind === 'signal' && value === undefined ? 'timed-out' : 'done';
}

/**
 * Whether no attempt before this one can have recorded anything. A job's first fence is the time of its
 * insert in milliseconds, and each claim adds one; its `createdAt` is never later than that time.
 */
function isFirstClaim({ job }: AttemptAddedTo): boolean {
  return job.fence - 1 === job.createdAt.getTime();
}
