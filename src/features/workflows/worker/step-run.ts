import { checkDefinition, type JobDefinition } from '../../../core/job/definition.ts';
import { describeThrown } from '../../../core/job/describe-error.ts';
import {
  checkBoolean,
  checkDate,
  checkDurationMs,
  checkInteger,
  checkObject,
  checkText,
  MAX_ATTEMPTS,
  MAX_NAME_BYTES,
  MAX_TIMER_MS,
  utf8Bytes,
} from '../../../core/job/limits.ts';
import type { NewJob } from '../../../core/job/new-job.ts';
import { shown } from '../../../core/job/shown.ts';
import { toStoredJson } from '../../../core/job/stored-json.ts';
import { type AsyncContext, asyncContext, nextTurn } from '../../../core/runtime.ts';
import type { Transaction } from '../../../core/sql/executor.ts';
import type { AttemptAddedTo } from '../../../core/worker/run/added-context.ts';
import { LeaseLostError, NonRetryableError, QueueError } from '../../../errors.ts';
import type { MemberEnd } from '../../batches/queries/find-ends.ts';
import type { Waited } from '../../batches/queries/find-waited.ts';
import type { WaitForBatches } from '../../batches/queries/wait-for-batches.ts';
import type {
  Child,
  ChildArguments,
  ChildEnd,
  ChildEntry,
  ChildOptions,
  Children,
  ParentCounts,
} from '../job/child.ts';
import type { SignalDefinition } from '../job/define-signal.ts';
import { signalValue } from '../job/signal-value.ts';
import type {
  OpenStep,
  Step,
  StepInfo,
  StepOptions,
  StepTransactionOptions,
  TokenOptions,
  WaitForSignalOptions,
} from '../job/step.ts';
import {
  ChildFailedError,
  DuplicateStepError,
  NestedStepError,
  StepFailedError,
  StepLimitError,
  StepMismatchError,
} from '../job/step-errors.ts';
import type { StepEnd, StepObservation, StepObserver } from '../job/step-observer.ts';
import type { FoundStep } from '../queries/find-steps.ts';
import type { Received, SignalToReceive } from '../queries/receive-signal.ts';
import type { RecordedStep, StepToRecord } from '../queries/record-steps.ts';
import type { StepErrorRecord, StepKind } from '../schema/queue-steps.ts';
import type { TokenClaims } from '../tokens/tokens.ts';

/** A step that was recorded before. One that only a test has given may be of any kind. */
export interface KnownStep extends Omit<FoundStep, 'kind'> {
  readonly kind: StepKind | undefined;
}

/** How the steps of one attempt reach the database. */
export interface StepStore {
  find(): Promise<readonly KnownStep[]>;
  /** `undefined`: the job is no longer held. */
  record(step: StepToRecord): Promise<RecordedStep | undefined>;
  /** The same in a transaction of the handler's. */
  recordIn(tx: Transaction, step: StepToRecord): Promise<RecordedStep | undefined>;
  /** `undefined`: the job is no longer held. */
  receive(signal: SignalToReceive): Promise<Received | undefined>;
  /** Checks jobs that are to be enqueued. */
  check(job: JobDefinition, entries: readonly ChildEntry<JobDefinition>[]): Promise<readonly NewJob[]>;
  /** Inserts and records them; `undefined`: the job is no longer held. */
  enqueue(children: ChildrenToEnqueue): Promise<EnqueuedChildren | undefined>;
  /** Whether there is something to wait for; `undefined`: the job is no longer held. */
  waitFor(wait: WaitForBatches): Promise<boolean | undefined>;
  /** How the members of batches have ended. */
  ends(batchIds: readonly number[], kind?: string): Promise<readonly MemberEnd[]>;
  /** What the job has waited for before it began. */
  waited(): Promise<Waited>;
  /** Signs a token. */
  token(claims: TokenClaims): Promise<string>;
}

/** Jobs to enqueue as children of a job. */
export interface ChildrenToEnqueue {
  readonly step: string;
  readonly jobs: readonly NewJob[];
  readonly entries: readonly ChildEntry<JobDefinition>[];
  readonly detached: boolean;
  /** What is recorded of them in the transaction that inserts them. */
  toStep(children: EnqueuedChildren): StepToRecord;
}

/** The same, enqueued. */
export interface EnqueuedChildren {
  readonly batch: number;
  readonly ids: readonly number[];
}

/** One year. */
const MAX_WAIT_MS = 365 * 24 * 3_600_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_STEPS = 10_000;
const MAX_CHILDREN = 10_000;
const RESULT_GONE = 'its result is gone, so how it ended is not known';
const MAX_TRACE = 200;
/** The step that says that a job is being undone, and the names of what undoes others. */
const UNDO = 'undo';

/** The step whose function the current code is part of. Asked for once: a browser has none. */
let insideSteps: AsyncContext<string> | undefined;

interface Undoable {
  readonly name: string;
  readonly undo: (info: StepInfo) => unknown;
  readonly undoIn?: ((tx: Transaction) => unknown) | undefined;
}

type Run<T> = (info: StepInfo) => T | Promise<T>;
type RunIn<T> = (tx: Transaction) => Promise<T>;

/**
 * The steps of one attempt. It reads what earlier attempts have recorded when the first step begins, and
 * gives the attempt up once all that is left of the handler waits.
 */
export class StepRun implements Step {
  readonly #attempt: AttemptAddedTo;
  readonly #store: StepStore;
  readonly #observer: StepObserver | undefined;
  /** Of the steps that are observed, by their names. */
  readonly #observations = new Map<string, StepObservation>();
  readonly #inside: AsyncContext<string> | undefined;
  readonly #names = new Set<string>();
  readonly #undoables: Undoable[] = [];
  /** How many signals this job has received, or waits for, by their name. */
  readonly #taken = new Map<string, number>();
  #memo: Promise<ReadonlyMap<string, KnownStep>> | undefined;
  /** When the memo was read, by the monotonic clock. */
  #readMs = 0;
  #recorded = 0;
  /** Steps that are neither over nor waiting: while there is one, the attempt goes on. */
  #active = 0;
  /** When the waits are over, by the monotonic clock. */
  readonly #waits: number[] = [];
  #isUndoing = false;
  /** The attempt is over, because all that was left of the handler waited. */
  #isParked = false;

  constructor(attempt: AttemptAddedTo, store: StepStore, observer?: StepObserver) {
    insideSteps ??= asyncContext<string>();
    this.#inside = insideSteps;
    this.#attempt = attempt;
    this.#store = store;
    this.#observer = observer;
  }

  async run<T>(name: string, ...given: [Run<T>] | [StepOptions<T>, Run<T>]): Promise<never> {
    const [options, run] = optionsAndRun<StepOptions<T>, Run<T>>('run', name, given);
    const { attempts, timeoutMs, undo } = options;
    if (attempts !== undefined) checkInteger(`step '${name}': attempts`, attempts, 1, MAX_ATTEMPTS);
    if (timeoutMs !== undefined) checkDurationMs(`step '${name}': timeoutMs`, timeoutMs, 1, MAX_TIMER_MS);
    return await this.#step(name, 'run', async (found) => {
      let output: unknown;
      if (isOver(found)) output = this.#outputOf(found);
      else {
        const startMs = performance.now();
        const result = await this.#tried(name, options, found, run);
        output = await this.#record({ name, kind: 'run', output: result, startMs });
      }
      if (undo !== undefined) {
        // What is stored has the type of what was returned.
        this.#undoables.push({ name, undo: (info) => undo(output as never, info) });
      }
      return output as never;
    });
  }

  async transaction<T>(
    name: string,
    ...given: [RunIn<T>] | [StepTransactionOptions<T, Transaction>, RunIn<T>]
  ): Promise<never> {
    const [options, run] = optionsAndRun<StepTransactionOptions<T, Transaction>, RunIn<T>>(
      'transaction',
      name,
      given,
    );
    const { undo } = options;
    return await this.#step(name, 'transaction', async (found) => {
      const output = isOver(found) ? this.#outputOf(found) : await this.#transacted(name, run);
      if (undo !== undefined) {
        // As in `run`.
        const undoIn = (tx: Transaction) => undo(tx, output as never);
        this.#undoables.push({ name, undo: () => undefined, undoIn });
      }
      return output as never;
    });
  }

  async begin<T>(name: string): Promise<OpenStep<T>> {
    const open = async (found: KnownStep | undefined): Promise<OpenStep<T>> => {
      const startMs = performance.now();
      const isDone = isOver(found);
      let isRecorded = isDone;
      return {
        done: isDone,
        output: isDone ? (this.#outputOf(found) as never) : undefined,
        record: async (output: T) => {
          if (isRecorded) throw new QueueError(`The step '${name}' is recorded already`);
          isRecorded = true;
          const recorded = await this.#busy(() => this.#record({ name, kind: 'run', output, startMs }));
          this.#observations.get(name)?.end('done');
          return recorded as never;
        },
      };
    };
    return await this.#step(name, 'run', open, 'later');
  }

  async sleep(name: string, delayMs: number): Promise<void> {
    checkDurationMs(`step '${name}': delayMs`, delayMs, 0, MAX_WAIT_MS);
    await this.#sleep(name, { delayMs });
  }

  async sleepUntil(name: string, date: Date): Promise<void> {
    checkDate(`step '${name}': date`, date);
    await this.#sleep(name, { until: date });
  }

  async waitForSignal(
    signal: SignalDefinition,
    { timeoutMs, name = signal?.name }: WaitForSignalOptions = {},
  ): Promise<never> {
    checkText('waitForSignal: the name of the signal', signal?.name, MAX_NAME_BYTES);
    if (timeoutMs !== undefined) checkDurationMs(`step '${name}': timeoutMs`, timeoutMs, 0, MAX_WAIT_MS);
    return await this.#step(name, 'signal', async (found) => {
      if (isOver(found)) return (await signalValue(signal, found.output)) as never;
      const at = this.#taken.get(signal.name) ?? 0;
      // Taken, or waited for: another wait for it in this run gets the one after it.
      this.#taken.set(signal.name, at + 1);
      const { id, fence } = this.#attempt.job;
      const wanted = { id, fence, name, signal: signal.name, at, timeoutMs, trace: this.#traceOf(name) };
      const received = await this.#store.receive(wanted);
      if (received === undefined) throw this.#lost();
      if (received.type === 'waiting') return await this.#wait(name, received.leftMs);
      this.#attempt.noteProgress();
      if (received.type === 'received') return (await signalValue(signal, received.value)) as never;
      this.#taken.set(signal.name, at);
      return undefined as never;
    });
  }

  async enqueue(
    name: string,
    job: JobDefinition,
    ...[payload, options = {}]: ChildArguments<JobDefinition>
  ): Promise<Child<never>> {
    const { detached, ...settings } = checkObject(`step '${name}': options`, options);
    const { batch, ids } = await this.#enqueue(name, job, [{ ...settings, payload }], { detached });
    // Of the kind that it was enqueued as.
    return { id: Number(ids[0]), job: job as never, step: name, batchId: batch };
  }

  async enqueueMany(
    name: string,
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
    options: ChildOptions = {},
  ): Promise<Children<never>> {
    const { batch, ids } = await this.#enqueue(name, job, entries, options);
    // As in `enqueue`.
    return { ids, job: job as never, step: name, batchId: batch };
  }

  async waitForJob(child: Child): Promise<never> {
    const name = `${checkChild(child).step}: end`;
    return (await this.#outputsOf(name, [child], ([output]) => output)) as never;
  }

  async all(name: string, children: Children | readonly Child[]): Promise<never> {
    return (await this.#outputsOf(name, children, (outputs) => outputs)) as never;
  }

  async allEnded(name: string, children: Children | readonly Child[]): Promise<never> {
    return await this.#step(name, 'wait', async (found) => {
      if (isOver(found)) return this.#outputOf(found) as never;
      const startMs = performance.now();
      const ends = await this.#endsOf(name, found, children, false);
      return (await this.#record({ name, kind: 'wait', output: ends, startMs })) as never;
    });
  }

  async parents(job: JobDefinition): Promise<never> {
    checkDefinition('parents', job);
    const { kind } = job;
    return (await this.#busy(async () => {
      const { batchIds } = await this.#store.waited();
      return (await this.#store.ends(batchIds, kind)).map(childEnd);
    })) as never;
  }

  async parentCounts(): Promise<ParentCounts> {
    const { total, failed } = await this.#busy(() => this.#store.waited());
    return { total, completed: total - failed, failed };
  }

  async token(signal: SignalDefinition, options: TokenOptions = {}): Promise<string> {
    checkText('step.token: the name of the signal', signal?.name, MAX_NAME_BYTES);
    const { expiresInMs, name = `token: ${signal.name}` } = checkObject('step.token: options', options);
    checkText('step.token: name', name, MAX_NAME_BYTES);
    if (expiresInMs !== undefined) checkDurationMs('step.token: expiresInMs', expiresInMs, 1, MAX_WAIT_MS);
    const { id: jobId } = this.#attempt.job;
    // What is recorded is the time alone: a token in the database could be redeemed by all who read it.
    const expiresAt =
      expiresInMs === undefined ? undefined : await this.run(name, () => Date.now() + expiresInMs);
    return await this.#busy(() => this.#store.token({ jobId, signal: signal.name, name, expiresAt }));
  }

  async undoAll(error: unknown): Promise<void> {
    const memo = await this.#busy(() => this.#read());
    this.#isUndoing = true;
    if (!memo.has(UNDO)) {
      const { id, fence } = this.#attempt.job;
      const step = { id, fence, name: UNDO, kind: UNDO, error: describeThrown(error) } as const;
      const recorded = await this.#busy(() => this.#store.record({ ...step, tookMs: 0, ended: true }));
      if (recorded === undefined) throw this.#lost();
    }
    for (const { name, undo, undoIn } of this.#undoables.splice(0).reverse()) {
      const undoName = `${UNDO}:${name}`;
      if (undoIn === undefined) await this.#undo(undoName, undo);
      else {
        await this.#step(undoName, 'transaction', async (found) => {
          if (!isOver(found)) await this.#transacted(undoName, async (tx) => void (await undoIn(tx)));
        });
      }
    }
  }

  async #undo(name: string, undo: (info: StepInfo) => unknown): Promise<void> {
    await this.#step(name, 'run', async (found) => {
      if (isOver(found)) return;
      const startMs = performance.now();
      await this.#tried(name, {}, found, async (info) => void (await undo(info)));
      await this.#record({ name, kind: 'run', output: undefined, startMs });
    });
  }

  async #sleep(name: string, step: Pick<StepToRecord, 'delayMs' | 'until'>): Promise<void> {
    await this.#step(name, 'sleep', async (found) => {
      let leftMs = this.#leftMs(found);
      if (leftMs === undefined) {
        const { id, fence } = this.#attempt.job;
        this.#checkCount();
        const trace = this.#traceOf(name);
        const sleep = { id, fence, name, kind: 'sleep', trace, tookMs: 0, ended: false } as const;
        const recorded = await this.#store.record({ ...sleep, ...step });
        if (recorded === undefined) throw this.#lost();
        this.#attempt.noteProgress();
        leftMs = recorded.leftMs ?? 0;
      }
      if (leftMs > 0) await this.#wait(name, Math.min(leftMs, MAX_WAIT_MS));
    });
  }

  async #enqueue(
    name: string,
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
    { detached = false }: ChildOptions,
  ): Promise<EnqueuedChildren> {
    checkDefinition('step.enqueue', job);
    if (job.keepResult === false) {
      throw new TypeError(
        `step '${name}': '${job.kind}' has keepResult: false, so nobody could learn how it ended; ` +
          "write keepResult: 'outcome'",
      );
    }
    checkBoolean(`step '${name}': detached`, detached);
    if (!Array.isArray(entries)) throw new TypeError(`step '${name}': entries must be an array`);
    if (entries.length > MAX_CHILDREN) {
      throw new StepLimitError(
        `The step '${name}' enqueues ${entries.length} jobs; ${MAX_CHILDREN} are the most. ` +
          'Use queue.workflows.enqueueBatch in a step.transaction',
      );
    }
    return await this.#step(name, 'enqueue', async (found) => {
      // Written below, in this shape.
      if (isOver(found)) return this.#outputOf(found) as EnqueuedChildren;
      const startMs = performance.now();
      const jobs = await this.#store.check(job, entries);
      const toStep = (children: EnqueuedChildren) => {
        const step = this.#toRecord(name, 'enqueue', children, startMs);
        this.#attempt.checkOpen();
        return step;
      };
      const enqueued = await this.#store.enqueue({ step: name, jobs, entries, detached, toStep });
      if (enqueued === undefined) throw this.#lost();
      this.#attempt.noteProgress();
      return enqueued;
    });
  }

  /** @param toStore what is recorded of their outputs */
  async #outputsOf(
    name: string,
    children: Children | readonly Child[],
    toStore: (outputs: readonly unknown[]) => unknown,
  ): Promise<unknown> {
    return await this.#step(name, 'wait', async (found) => {
      if (isOver(found)) {
        // Written below, in these two shapes.
        if (found.error !== null) throw childFailed(found.output as FailedChild);
        return found.output;
      }
      const startMs = performance.now();
      const ends = await this.#endsOf(name, found, children, true);
      const failed = ends.find((end): end is FailedChild => end.state !== 'completed');
      if (failed !== undefined) {
        const error = childFailed(failed);
        await this.#record({ name, kind: 'wait', output: failed, startMs, error: describeThrown(error) });
        throw error;
      }
      const output = toStore(ends.map((end) => ('output' in end ? end.output : null)));
      return await this.#record({ name, kind: 'wait', output, startMs });
    });
  }

  /** How children have ended, in their order; as long as they have not, this job waits. */
  async #endsOf(
    name: string,
    found: KnownStep | undefined,
    children: Children | readonly Child[],
    failFast: boolean,
  ): Promise<(ChildEnd & { readonly kind: string })[]> {
    const { id, fence } = this.#attempt.job;
    const { batchIds, kinds } = idsOf(name, children);
    const find = async () =>
      new Map((await this.#store.ends(batchIds)).map((end) => [end.id, childEnd(end)] as const));
    // With failFast others may still run; one that has failed is there.
    const hasFailed = () => failFast && [...ends.values()].some(({ state }) => state !== 'completed');
    // It has waited before, so they have probably ended.
    let ends = found === undefined ? new Map<number, ChildEnd>() : await find();
    if (ends.size < kinds.size && !hasFailed()) {
      const isOpen = await this.#store.waitFor({ id, fence, batchIds, failFast });
      if (isOpen === undefined) throw this.#lost();
      if (isOpen) {
        if (found === undefined) await this.#recordWait(name);
        return await this.#wait(name, null);
      }
      ends = await find();
    }
    return [...kinds].flatMap(([id, kind]) => {
      const end = ends.get(id);
      if (end === undefined && hasFailed()) return [];
      return [{ ...(end ?? { id, state: 'gone', reason: RESULT_GONE }), kind }];
    });
  }

  /** That it waits, for those who look. */
  async #recordWait(name: string): Promise<void> {
    const { id, fence } = this.#attempt.job;
    this.#checkCount();
    const step = { id, fence, name, kind: 'wait', tookMs: 0, ended: false } as const;
    if ((await this.#store.record(step)) === undefined) throw this.#lost();
    this.#attempt.noteProgress();
  }

  /** In how long a step waits no longer; `undefined` where it has not begun to, or has no such time. */
  #leftMs(found: KnownStep | undefined): number | undefined {
    return found?.leftMs === undefined ? undefined : found.leftMs - (performance.now() - this.#readMs);
  }

  /**
   * One step, from its name on.
   *
   * @param ends when its observation does: with `run`, or later, by what that returns
   */
  async #step<T>(
    name: string,
    kind: StepKind,
    run: (found: KnownStep | undefined) => Promise<T>,
    ends: 'with it' | 'later' = 'with it',
  ): Promise<T> {
    checkText('The name of a step', name, MAX_NAME_BYTES);
    const isUndo = name === UNDO || name.startsWith(`${UNDO}:`);
    if (isUndo && !this.#isUndoing)
      throw new TypeError(`A step cannot have the name '${name}': undoAll uses it`);
    // Left behind by waits beside it: it goes on in the next run.
    if (this.#isParked) return await new Promise(() => undefined);
    const outer = this.#inside?.getStore();
    const { job } = this.#attempt;
    if (outer !== undefined) throw new NestedStepError(job.kind, name, outer);
    if (this.#names.has(name)) throw new DuplicateStepError(job.kind, name);
    this.#names.add(name);
    return await this.#busy(async () => {
      this.#attempt.checkOpen();
      const memo = await this.#read();
      const found = memo.get(name);
      if (found?.kind !== undefined && found.kind !== kind) {
        throw new StepMismatchError(job.kind, name, found.kind, kind);
      }
      if (!isOver(found) && !this.#isUndoing) this.#checkWanted(memo.get(UNDO)?.error);
      const attempt = found === undefined || found.error === null ? 1 : found.attempts + 1;
      const isReplayed = isOver(found) || (kind === 'sleep' && (this.#leftMs(found) ?? 1) <= 0);
      if (this.#observer === undefined || isReplayed) return await run(found);
      const observation = this.#observer.begin({
        job: { id: job.id, kind: job.kind, queue: job.queue, attempt: job.attempt },
        name,
        kind,
        attempt,
        signal: this.#attempt.signal,
      });
      this.#observations.set(name, observation);
      try {
        const value = await observation.run(() => run(found));
        if (ends === 'with it') observation.end(endOf(kind, value));
        return value;
      } catch (error) {
        observation.end('failed', error);
        throw error;
      }
    });
  }

  #traceOf(name: string): string | undefined {
    const trace = this.#observations.get(name)?.trace;
    return trace === undefined || trace.length > MAX_TRACE ? undefined : trace;
  }

  /** @throws why no new step is to begin: the job is to end, or is being undone */
  #checkWanted(undoneFor: StepErrorRecord | null | undefined): void {
    this.#attempt.signal.throwIfAborted();
    if (undoneFor === null || undoneFor === undefined) return;
    throw new NonRetryableError(undoneFor.message);
  }

  /** What goes on meanwhile is not left behind by waits beside it. */
  async #busy<T>(task: () => Promise<T>): Promise<T> {
    this.#active++;
    try {
      return await task();
    } finally {
      this.#active--;
      this.#parkWhenIdle();
    }
  }

  #read(): Promise<ReadonlyMap<string, KnownStep>> {
    this.#memo ??= this.#readNow();
    return this.#memo;
  }

  async #readNow(): Promise<ReadonlyMap<string, KnownStep>> {
    this.#readMs = performance.now();
    const steps = isFirstClaim(this.#attempt) ? [] : await this.#store.find();
    for (const { kind, signal, output } of steps) {
      if (kind !== 'signal' || signal === null || output === undefined) continue;
      this.#taken.set(signal, (this.#taken.get(signal) ?? 0) + 1);
    }
    this.#recorded = steps.length;
    // They are in the order in which they began.
    const trace = steps.findLast((step) => step.trace !== null)?.trace;
    if (trace !== undefined && trace !== null) this.#observer?.resume(trace);
    return new Map(steps.map((step) => [step.name, step]));
  }

  #outputOf({ name, error, attempts, output }: KnownStep): unknown {
    if (error === null) return output;
    throw new StepFailedError(this.#attempt.job.kind, name, attempts, error);
  }

  /** Calls the function of a step; counts its failures where they are bounded. */
  async #tried<T>(
    name: string,
    { attempts, timeoutMs }: Pick<StepOptions<T>, 'attempts' | 'timeoutMs'>,
    found: KnownStep | undefined,
    run: Run<T>,
  ): Promise<T> {
    const startMs = performance.now();
    try {
      return await this.#called(name, timeoutMs, run);
    } catch (error) {
      this.#attempt.checkOpen();
      // It was told to stop: that says nothing about the step.
      if (attempts === undefined || this.#attempt.signal.aborted) throw error;
      const tried = (found?.attempts ?? 0) + 1;
      const isLast = tried >= attempts || error instanceof NonRetryableError;
      const { id, fence, kind } = this.#attempt.job;
      const record = describeThrown(error);
      const recorded = await this.#store.record({
        id,
        fence,
        name,
        kind: 'run',
        error: record,
        attempts: tried,
        tookMs: performance.now() - startMs,
        ended: isLast,
      });
      if (recorded === undefined) throw this.#lost();
      if (isLast) throw new StepFailedError(kind, name, tried, record, { cause: error });
      throw error;
    }
  }

  async #called<T>(name: string, timeoutMs: number | undefined, run: Run<T>): Promise<T> {
    const { job } = this.#attempt;
    // What is undone because the job is cancelled must not be told to stop for that.
    const signal = this.#isUndoing ? new AbortController().signal : this.#attempt.signal;
    const idempotencyKey = `${job.id}:${name}`;
    const call = (signal: AbortSignal) => this.#within(name, () => run({ signal, idempotencyKey }));
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

  async #within<T>(name: string, task: () => T | Promise<T>): Promise<T> {
    return await (this.#inside === undefined ? task() : this.#inside.run(name, task));
  }

  async #record({
    name,
    kind,
    output,
    startMs,
    error,
  }: {
    readonly name: string;
    readonly kind: StepKind;
    readonly output: unknown;
    readonly startMs: number;
    readonly error?: StepErrorRecord;
  }): Promise<unknown> {
    const step = { ...this.#toRecord(name, kind, output, startMs), error };
    if ((await this.#store.record(step)) === undefined) throw this.#lost();
    this.#attempt.noteProgress();
    return step.output === undefined ? undefined : JSON.parse(step.output);
  }

  async #transacted<T>(name: string, run: RunIn<T>): Promise<unknown> {
    const startMs = performance.now();
    const stored = await this.#attempt.environment.db.transaction(async (tx) => {
      const output = await this.#within(name, () => run(tx));
      const step = this.#toRecord(name, 'transaction', output, startMs);
      this.#attempt.checkOpen();
      if ((await this.#store.recordIn(tx, step)) === undefined) throw this.#lost();
      return step.output;
    });
    this.#attempt.noteProgress();
    return stored === undefined ? undefined : JSON.parse(stored);
  }

  #toRecord(name: string, kind: StepKind, output: unknown, startMs: number): StepToRecord {
    const { id, fence } = this.#attempt.job;
    const json = output === undefined ? undefined : toStoredJson(output);
    if (json !== undefined && json.length > MAX_OUTPUT_BYTES / 4 && utf8Bytes(json) > MAX_OUTPUT_BYTES) {
      throw new StepLimitError(
        `The output of the step '${name}' has ${utf8Bytes(json)} bytes; 1 MB is the most. Store large data ` +
          'elsewhere, and return where it is',
      );
    }
    this.#checkCount();
    return { id, fence, name, kind, output: json, tookMs: performance.now() - startMs, ended: true };
  }

  /** @throws StepLimitError */
  #checkCount(): void {
    if (++this.#recorded <= MAX_STEPS) return;
    const { id, kind } = this.#attempt.job;
    throw new StepLimitError(
      `Job ${id} ('${kind}') has ${MAX_STEPS} steps, which is the most. ` +
        'Enqueue a job for each part of the work, or end this one and enqueue the next in complete(tx)',
    );
  }

  #lost(): LeaseLostError {
    const { kind, id } = this.#attempt.job;
    return new LeaseLostError(kind, id);
  }

  /** Never settles: nothing of the handler runs on, no `catch` and no `finally`. */
  #wait(name: string, leftMs: number | null): Promise<never> {
    this.#observations.get(name)?.end('waiting');
    this.#waits.push(leftMs === null ? Number.POSITIVE_INFINITY : performance.now() + leftMs);
    this.#active--;
    this.#parkWhenIdle();
    return new Promise(() => undefined);
  }

  #parkWhenIdle(): void {
    if (this.#active === 0 && this.#waits.length > 0) void this.#park();
  }

  async #park(): Promise<void> {
    // What goes on after a step that has just ended may begin another.
    await nextTurn();
    if (this.#active > 0 || this.#isParked) return;
    this.#isParked = true;
    const leftMs = Math.min(...this.#waits) - performance.now();
    this.#attempt.wait(leftMs === Number.POSITIVE_INFINITY ? null : Math.max(0, Math.ceil(leftMs)));
  }
}

type FailedChild = Exclude<ChildEnd, { readonly state: 'completed' }> & { readonly kind: string };

function childFailed({ id, kind, state, reason }: FailedChild): ChildFailedError {
  return new ChildFailedError(id, kind, state, reason);
}

function childEnd({ id, state, output, message = 'no reason was given' }: MemberEnd): ChildEnd {
  // What is stored has the type of what the handler returned.
  return state === 'completed' ? { id, state, output: output as never } : { id, state, reason: message };
}

/** For callers without TypeScript. @throws TypeError */
function checkChild(child: Child): Child {
  const { id, step, batchId, job } = Object(child);
  if (typeof id === 'number' && typeof step === 'string' && typeof batchId === 'number') {
    checkDefinition('waitForJob', job);
    return child;
  }
  throw new TypeError(`waitForJob takes what step.enqueue has returned, got ${shown(child)}`);
}

/** The batches of children, and the kinds of these by their ids, in their order. */
function idsOf(
  name: string,
  children: Children | readonly Child[],
): { readonly batchIds: readonly number[]; readonly kinds: ReadonlyMap<number, string> } {
  if (Array.isArray(children)) {
    const all = (children as readonly Child[]).map(checkChild);
    const batchIds = [...new Set(all.map(({ batchId }) => batchId))];
    return { batchIds, kinds: new Map(all.map(({ id, job }) => [id, job.kind])) };
  }
  const { ids, batchId, job } = checkObject(`step '${name}': children`, children as Children);
  if (!Array.isArray(ids)) {
    throw new TypeError(`step '${name}' takes what step.enqueueMany has returned, got ${shown(children)}`);
  }
  return { batchIds: [batchId], kinds: new Map(ids.map((id) => [id, job.kind])) };
}

function isOver(found: KnownStep | undefined): found is KnownStep {
  return found !== undefined && found.endedAt !== null;
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

function optionsAndRun<TOptions extends object, TRun>(
  method: string,
  name: string,
  given: readonly [TRun] | readonly [TOptions, TRun],
): [Partial<TOptions>, TRun] {
  const [first, second] = given;
  const run = second ?? first;
  if (typeof run !== 'function') {
    throw new TypeError(`step.${method}('${name}', …) takes a function as its last argument`);
  }
  // Checked just now: a function comes last, and options come before it.
  return second === undefined ? [{}, first as TRun] : [first as TOptions, second];
}
