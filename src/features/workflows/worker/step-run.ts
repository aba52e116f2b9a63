import type { JobDefinition } from '../../../core/job/definition.ts';
import { describeThrown } from '../../../core/job/describe-error.ts';
import { checkOptions, namesOf } from '../../../core/job/known-options.ts';
import {
  checkDate,
  checkDurationMs,
  checkInteger,
  checkText,
  MAX_ATTEMPTS,
  MAX_NAME_BYTES,
  MAX_TIMER_MS,
} from '../../../core/job/limits.ts';
import { nextTurn } from '../../../core/runtime.ts';
import type { Transaction } from '../../../core/sql/executor.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import type { AttemptAddedTo } from '../../../core/worker/run/added-context.ts';
import { QueueError } from '../../../errors.ts';
import type {
  Child,
  ChildArguments,
  ChildEntry,
  ChildOptions,
  Children,
  ParentCounts,
} from '../job/child.ts';
import type { SignalDefinition } from '../job/define-signal.ts';
import type { FirstOptions, FirstSources } from '../job/first.ts';
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
import { TOKEN, UNDO } from '../job/step-names.ts';
import type { StepObserver } from '../job/step-observer.ts';
import type { StepToRecord } from '../queries/record-steps.ts';
import type { StepErrorRecord } from '../schema/queue-steps.ts';
import {
  AttemptSteps,
  isOver,
  type KnownStep,
  MAX_WAIT_MS,
  type Run,
  type RunIn,
  type StepStore,
} from './attempt-steps.ts';
import { FirstStep } from './first-step.ts';
import { StepChildren } from './step-children.ts';
import { Turns } from './turns.ts';

const RUN_OPTIONS = namesOf<StepOptions<never>>({ attempts: true, timeoutMs: true, undo: true });
const TRANSACTION_OPTIONS = namesOf<StepTransactionOptions<never, Transaction>>({ undo: true });
const SIGNAL_OPTIONS = namesOf<WaitForSignalOptions>({ timeoutMs: true, name: true });
const TOKEN_OPTIONS = namesOf<TokenOptions>({ expiresInMs: true, name: true });

interface Undoable {
  readonly name: string;
  readonly undo: (info: StepInfo) => unknown;
  readonly undoIn?: ((tx: Transaction) => unknown) | undefined;
}

/**
 * The steps of one attempt, as its handler sees them.
 */
export class StepRun implements Step {
  readonly #steps: AttemptSteps;
  readonly #children: StepChildren;
  /** What is to be undone; the last first. */
  readonly #undoables: Undoable[] = [];
  readonly #undoing = new Turns<'undo'>();
  #isUndoRecorded = false;

  constructor(attempt: AttemptAddedTo, store: StepStore, observer?: StepObserver) {
    this.#steps = new AttemptSteps(attempt, store, observer);
    this.#children = new StepChildren(this.#steps);
  }

  async run<T>(name: string, ...given: [Run<T>] | [StepOptions<T>, Run<T>]): Promise<never> {
    const [options, run] = optionsAndRun<StepOptions<T>, Run<T>>('run', name, given, RUN_OPTIONS);
    const { attempts, timeoutMs, undo } = options;
    if (attempts !== undefined) checkInteger(`step '${name}': attempts`, attempts, 1, MAX_ATTEMPTS);
    if (timeoutMs !== undefined) checkDurationMs(`step '${name}': timeoutMs`, timeoutMs, 1, MAX_TIMER_MS);
    return await this.#steps.step(name, 'run', async (found) => {
      let output: unknown;
      if (isOver(found)) output = this.#steps.outputOf(found);
      else {
        const startMs = performance.now();
        const result = await this.#steps.tried(name, options, found, run);
        // The tries that have failed count as well.
        const attempts = (found?.attempts ?? 0) + 1;
        output = await this.#steps.record({ name, kind: 'run', output: result, startMs, attempts });
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
      TRANSACTION_OPTIONS,
    );
    const { undo } = options;
    return await this.#steps.step(name, 'transaction', async (found) => {
      const output = isOver(found) ? this.#steps.outputOf(found) : await this.#steps.transacted(name, run);
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
        output: isDone ? (this.#steps.outputOf(found) as never) : undefined,
        record: async (output: T) => {
          if (isRecorded) throw new QueueError(`The step '${name}' is recorded already`);
          isRecorded = true;
          try {
            const recorded = await this.#steps.busy(() =>
              this.#steps.record({ name, kind: 'run', output, startMs }),
            );
            this.#steps.endObservation(name);
            return recorded as never;
          } catch (error) {
            // An output that is too large may be left out, or made smaller.
            isRecorded = false;
            throw error;
          }
        },
      };
    };
    return await this.#steps.step(name, 'run', open, 'later');
  }

  sleep(name: string, delayMs: number): Promise<void> {
    return this.#steps.awaited(async () => {
      checkDurationMs(`step '${name}': delayMs`, delayMs, 0, MAX_WAIT_MS);
      await this.#sleep(name, { delayMs });
    });
  }

  sleepUntil(name: string, date: Date): Promise<void> {
    return this.#steps.awaited(async () => {
      checkDate(`step '${name}': date`, date);
      await this.#sleep(name, { until: date });
    });
  }

  waitForSignal(signal: SignalDefinition, options: WaitForSignalOptions = {}): Promise<never> {
    return this.#steps.awaited(() => this.#waitForSignal(signal, options));
  }

  first(name: string, sources: FirstSources, options: FirstOptions = {}): Promise<never> {
    const first = new FirstStep(this.#steps, this.#children);
    // Its type is that of the sources.
    return this.#steps.awaited(async () => (await first.first(name, sources, options)) as never);
  }

  enqueue(name: string, job: JobDefinition, ...args: ChildArguments<JobDefinition>): Promise<Child<never>> {
    return this.#children.enqueue(name, job, ...args);
  }

  enqueueMany(
    name: string,
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
    options?: ChildOptions,
  ): Promise<Children<never>> {
    return this.#children.enqueueMany(name, job, entries, options);
  }

  addToFlow(
    name: string,
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
  ): Promise<readonly number[]> {
    return this.#children.addToFlow(name, job, entries);
  }

  waitForJob(child: Child): Promise<never> {
    return this.#steps.awaited(() => this.#children.waitForJob(child));
  }

  all(name: string, children: Children | readonly Child[]): Promise<never> {
    return this.#steps.awaited(() => this.#children.all(name, children));
  }

  allEnded(name: string, children: Children | readonly Child[]): Promise<never> {
    return this.#steps.awaited(() => this.#children.allEnded(name, children));
  }

  parents(job: JobDefinition): Promise<never> {
    return this.#children.parents(job);
  }

  parentCounts(): Promise<ParentCounts> {
    return this.#children.parentCounts();
  }

  async token(signal: SignalDefinition, options: TokenOptions = {}): Promise<string> {
    checkText('step.token: the name of the signal', signal?.name, MAX_NAME_BYTES);
    const { expiresInMs, name: given } = checkOptions('step.token: options', options, TOKEN_OPTIONS);
    if (given !== undefined) checkText('step.token: name', given, MAX_NAME_BYTES);
    const name = given ?? `${TOKEN}${signal.name}`;
    if (expiresInMs !== undefined) checkDurationMs('step.token: expiresInMs', expiresInMs, 1, MAX_WAIT_MS);
    const { id: jobId } = this.#steps.attempt.job;
    // What is recorded is the time alone: a token in the database could be redeemed by all who read it.
    const expiresAt =
      expiresInMs === undefined
        ? undefined
        : await this.run(name, () => Math.round(this.#steps.attempt.databaseNowMs) + expiresInMs);
    return await this.#steps.busy(() =>
      this.#steps.store.token({ jobId, signal: signal.name, name, expiresAt }),
    );
  }

  /** Calls side by side come one after the other, so that each returns once all is undone. */
  async undoAll(error: unknown): Promise<void> {
    this.#steps.checkOutside('undoAll');
    await this.#steps.checkNotLeft(error);
    await this.#undoing.take(['undo'], async () => {
      const memo = await this.#steps.busy(() => this.#steps.read());
      const reason = describeThrown(error);
      await this.#steps.undo(reason, async () => {
        if (!memo.has(UNDO) && !this.#isUndoRecorded) await this.#recordUndo(reason);
        do {
          // Others may still be replayed beside it: they take no longer than this turn.
          await this.#steps.busy(nextTurn);
          await this.#steps.replayBeside();
          await this.#undoRecorded();
        } while (await this.#steps.idle()?.then(() => true));
      });
    });
  }

  async #recordUndo(error: StepErrorRecord): Promise<void> {
    const { id, fence } = this.#steps.attempt.job;
    const step = { id, fence, name: UNDO, kind: UNDO, error, tookMs: 0, ended: true } as const;
    const recorded = await this.#steps.busy(() => this.#steps.store.record(step));
    if (recorded === undefined) throw this.#steps.lost();
    this.#isUndoRecorded = true;
    await faultPoint('undo: marked');
  }

  async #undoRecorded(): Promise<void> {
    // One by one: steps that are under way may be recorded meanwhile.
    for (let last = this.#undoables.pop(); last !== undefined; last = this.#undoables.pop()) {
      const undoName = `${UNDO}:${last.name}`;
      try {
        await this.#undo(undoName, last);
      } catch (error) {
        // Another call may try it again.
        this.#undoables.push(last);
        this.#steps.undoFailed(last.name, error);
        this.#steps.mayComeAgain(undoName);
        throw error;
      }
    }
  }

  async #undo(name: string, { undo, undoIn }: Undoable): Promise<void> {
    if (undoIn !== undefined) {
      await this.#steps.step(name, 'transaction', async (found) => {
        if (!isOver(found)) await this.#steps.transacted(name, async (tx) => void (await undoIn(tx)));
      });
      return;
    }
    await this.#steps.step(name, 'run', async (found) => {
      if (isOver(found)) return;
      const startMs = performance.now();
      await this.#steps.tried(name, {}, found, async (info) => void (await undo(info)));
      await this.#steps.record({ name, kind: 'run', output: undefined, startMs });
    });
  }

  async #waitForSignal(signal: SignalDefinition, options: WaitForSignalOptions): Promise<never> {
    checkText('waitForSignal: the name of the signal', signal?.name, MAX_NAME_BYTES);
    const known = checkOptions('waitForSignal: options', options, SIGNAL_OPTIONS);
    const { timeoutMs, name = signal.name } = known;
    if (timeoutMs !== undefined) checkDurationMs(`step '${name}': timeoutMs`, timeoutMs, 0, MAX_WAIT_MS);
    return await this.#steps.step(name, 'signal', async (found) => {
      if (isOver(found)) return (await signalValue(signal, found.output)) as never;
      const trace = this.#steps.traceOf(name);
      const received = await this.#steps.receive({ name, signal: signal.name, timeoutMs, trace });
      if (received.type === 'waiting') return await this.#steps.wait(name, received.leftMs);
      this.#steps.attempt.noteProgress();
      if (received.type === 'received') return (await signalValue(signal, received.value)) as never;
      return undefined as never;
    });
  }

  async #sleep(name: string, step: Pick<StepToRecord, 'delayMs' | 'until'>): Promise<void> {
    await this.#steps.step(name, 'sleep', async (found) => {
      let leftMs = this.#steps.leftMs(found);
      if (leftMs === undefined) {
        const { id, fence } = this.#steps.attempt.job;
        const trace = this.#steps.traceOf(name);
        const sleep = { id, fence, name, kind: 'sleep', trace, tookMs: 0, ended: false } as const;
        const recorded = await this.#steps.store.record({ ...sleep, ...step });
        if (recorded === undefined) throw this.#steps.lost();
        this.#steps.attempt.noteProgress();
        leftMs = recorded.leftMs ?? 0;
      }
      if (leftMs > 0) await this.#steps.wait(name, Math.min(leftMs, MAX_WAIT_MS));
    });
  }
}

function optionsAndRun<TOptions extends object, TRun>(
  method: string,
  name: string,
  given: readonly [TRun] | readonly [TOptions, TRun],
  known: ReadonlySet<string>,
): [Partial<TOptions>, TRun] {
  const [first, second] = given;
  const run = second ?? first;
  if (typeof run !== 'function') {
    throw new TypeError(`step.${method}('${name}', …) takes a function as its last argument`);
  }
  // A function comes last, and options come before it.
  if (second === undefined) return [{}, first as TRun];
  return [checkOptions(`step '${name}': options`, first as TOptions, known), second];
}
