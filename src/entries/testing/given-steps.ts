import type { StepErrorRecord, StepKind } from '../../features/workflows/schema/index.ts';
import type { ChildEntry, JobDefinition, SignalDefinition, SignalInput } from '../../index.ts';
import {
  type ChildrenToEnqueue,
  describeThrown,
  type EnqueuedChildren,
  type KnownStep,
  type MemberEnd,
  type NewJob,
  newJob,
  type Received,
  type RecordedStep,
  type SignalToReceive,
  type StepStore,
  type StepToRecord,
  signalToStore,
  type TokenClaims,
  type Tokens,
  tokensFor,
  toStoredJson,
  UnstorableValueError,
  type Waited,
} from '../../internal.ts';

/** A signal for `runHandler`, made by {@link sent}. */
export interface GivenSignal {
  readonly signal: SignalDefinition;
  readonly value: unknown;
}

/**
 * A signal that was sent to the job of `runHandler`: its definition and its value, as
 * `queue.workflows.signal` takes them.
 *
 * ```ts
 * const options = { payload, queue, signals: [sent(approval, { by: 'Ada', ok: true })] };
 * const run = await runHandler(fulfil, options, fulfilHandler);
 * ```
 */
export function sent<TSignal extends SignalDefinition>(
  signal: TSignal,
  ...[value]: undefined extends SignalInput<TSignal>
    ? [value?: SignalInput<TSignal>]
    : [value: SignalInput<TSignal>]
): GivenSignal {
  return { signal, value };
}

/** A step that a handler has recorded in `runHandler`. */
export interface RunStep {
  readonly name: string;
  readonly kind: StepKind;
  /** The name of the signal that it has received; `null` for other steps. */
  readonly signal: string | null;
  /** As it would be stored; `undefined` for a step without an output. */
  readonly output: unknown;
  /** What it has thrown, where its `attempts` are bounded; of `undoAll`, why. */
  readonly error: StepErrorRecord | null;
  /** How long a sleep would last, in milliseconds; `undefined` for other steps, and with `sleepUntil`. */
  readonly delayMs: number | undefined;
  /** Until when `sleepUntil` would sleep; `undefined` for other steps. */
  readonly until: Date | undefined;
}

/** The steps of the job of `runHandler`, without a database: those that a test has given, and new ones. */
export class GivenSteps implements StepStore {
  readonly #given: ReadonlyMap<string, KnownStep>;
  /** The stored values of signals, in the order in which they were sent, by their name. */
  readonly #signals: ReadonlyMap<string, readonly unknown[]>;
  readonly #recorded = new Map<string, RunStep>();
  readonly #waiting = new Set<string>();
  #lastBatch = 0;
  /** The job itself has the first. */
  #lastId = 1;

  readonly #tokens: Tokens | undefined;

  private constructor(
    given: ReadonlyMap<string, KnownStep>,
    signals: ReadonlyMap<string, readonly unknown[]>,
    tokens: Tokens | undefined,
  ) {
    this.#given = given;
    this.#signals = signals;
    this.#tokens = tokens;
  }

  /**
   * @param tokens of the queue, if it has secrets
   * @throws InvalidSignalError for a value that the schema of its signal refuses
   * @throws TypeError for an output that JSON cannot hold
   */
  static async of(
    outputs: Readonly<Record<string, unknown>>,
    signals: readonly GivenSignal[],
    tokens: Tokens | undefined,
  ): Promise<GivenSteps> {
    const values = new Map<string, unknown[]>();
    for (const { signal, value } of signals) {
      const stored: unknown = JSON.parse(await signalToStore(signal, value));
      values.set(signal.name, [...(values.get(signal.name) ?? []), stored]);
    }
    const given = Object.entries(outputs).map(([name, output]) => [name, givenStep(name, output)] as const);
    return new GivenSteps(new Map(given), values, tokens);
  }

  /** What the handler has recorded, in that order. */
  get recorded(): readonly RunStep[] {
    return [...this.#recorded.values()];
  }

  /** The steps that have found no signal, or wait for children. */
  get waiting(): readonly string[] {
    return [...this.#waiting];
  }

  async find(): Promise<readonly KnownStep[]> {
    return [...this.#given.values()];
  }

  async record({ name, kind, output, error, delayMs, until, ended }: StepToRecord): Promise<RecordedStep> {
    if ((kind === 'wait' || kind === 'first') && !ended) {
      this.#waiting.add(name);
      return { leftMs: undefined };
    }
    this.#note({
      name,
      kind,
      signal: null,
      output: output === undefined ? undefined : JSON.parse(output),
      error: error ?? null,
      delayMs,
      until,
    });
    // A sleep passes at once.
    return { leftMs: kind === 'sleep' ? 0 : undefined };
  }

  async recordIn(_tx: unknown, step: StepToRecord): Promise<RecordedStep> {
    return await this.record(step);
  }

  async recordAndCancel(step: StepToRecord): Promise<RecordedStep> {
    return await this.record(step);
  }

  async receive({ name, signal, at, timeoutMs, first }: SignalToReceive): Promise<Received> {
    const values = this.#signals.get(signal) ?? [];
    if (at >= values.length) {
      this.#waiting.add(name);
      return { type: 'waiting', leftMs: timeoutMs ?? null };
    }
    const output = first === undefined ? values[at] : { key: first, value: values[at] };
    const kind = first === undefined ? 'signal' : 'first';
    this.#note({ name, kind, signal, output, error: null, delayMs: undefined, until: undefined });
    return { type: 'received', value: output };
  }

  async check(job: JobDefinition, entries: readonly ChildEntry<JobDefinition>[]): Promise<NewJob[]> {
    return await Promise.all(entries.map(({ payload, ...settings }) => newJob(job, payload, settings)));
  }

  async enqueue({ jobs, toStep }: ChildrenToEnqueue): Promise<EnqueuedChildren> {
    const batch = ++this.#lastBatch;
    const children = { batch, ids: jobs.map(() => ++this.#lastId) };
    await this.record(toStep(children));
    return children;
  }

  /** Children never run here: what they return is given under the name of the step that waits. */
  async waitFor(): Promise<boolean> {
    return true;
  }

  async ends(): Promise<readonly MemberEnd[]> {
    return [];
  }

  async waited(): Promise<Waited> {
    return { batchIds: [], total: 0, failed: 0 };
  }

  undoFailed(): void {}

  async token(claims: TokenClaims): Promise<string> {
    return await tokensFor('step.token', this.#tokens).make(claims);
  }

  #note(step: RunStep): void {
    this.#waiting.delete(step.name);
    this.#recorded.set(step.name, step);
  }
}

/** It is over, whatever it is in the code; with an error it has failed for good. */
function givenStep(name: string, output: unknown): KnownStep {
  const at = new Date();
  const isError = output instanceof Error;
  return {
    name,
    kind: undefined,
    signal: null,
    output: isError || output === undefined ? undefined : storedOutput(name, output),
    error: isError ? describeThrown(output) : null,
    attempts: 1,
    until: null,
    leftMs: 0,
    trace: null,
    startedAt: at,
    endedAt: at,
  };
}

function storedOutput(name: string, output: unknown): unknown {
  try {
    return JSON.parse(toStoredJson(output));
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    throw new TypeError(`runHandler: the output of the step '${name}' cannot be stored: ${error.message}`);
  }
}
