import type { StepErrorRecord, StepKind } from '../../features/workflows/schema/index.ts';
import {
  type ChildEntry,
  ChildFailedError,
  type JobDefinition,
  type SignalDefinition,
  type SignalInput,
} from '../../index.ts';
import { describeThrown, type NewJob, newJob, shown } from '../../internal.ts';
import {
  type ChildrenToEnqueue,
  type EnqueuedChildren,
  type KnownStep,
  type MemberEnd,
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
} from '../../testing-face.ts';
import { type GivenParent, toMemberEnds } from './given-parents.ts';

/** The batch of the jobs that the job has waited for. Those of its children are counted from 1. */
const PARENTS = 0;

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
  /** The given steps, and those that the handler has recorded, which are read again after an undo. */
  readonly #known: Map<string, KnownStep>;
  /** The errors among what was given, by the names of their steps. */
  readonly #errors: ReadonlyMap<string, Error>;
  /** The stored values of signals, in the order in which they were sent, by their name. */
  readonly #signals: ReadonlyMap<string, readonly unknown[]>;
  readonly #parents: readonly MemberEnd[];
  readonly #recorded = new Map<string, RunStep>();
  readonly #waiting = new Set<string>();
  /** The jobs that steps have enqueued, the last of them last. */
  readonly #enqueued: { readonly step: string; readonly id: number; readonly kind: string }[] = [];
  #lastBatch = 0;
  /** The job itself has the first. */
  #lastId = 1;

  readonly #tokens: Tokens | undefined;

  private constructor(
    outputs: Readonly<Record<string, unknown>>,
    signals: ReadonlyMap<string, readonly unknown[]>,
    parents: readonly MemberEnd[],
    tokens: Tokens | undefined,
  ) {
    const entries = Object.entries(outputs);
    this.#known = new Map(entries.map(([name, output]) => [name, givenStep(name, output)]));
    this.#errors = new Map(entries.filter((entry): entry is [string, Error] => entry[1] instanceof Error));
    this.#signals = signals;
    this.#parents = parents;
    this.#tokens = tokens;
  }

  /**
   * @param tokens of the queue, if it has secrets
   * @throws InvalidSignalError for a value that the schema of its signal refuses
   * @throws InvalidOutputError for an output of a parent that its definition refuses
   * @throws TypeError for an output that JSON cannot hold
   */
  static async of(
    outputs: Readonly<Record<string, unknown>>,
    signals: readonly GivenSignal[],
    parents: readonly GivenParent[],
    tokens: Tokens | undefined,
  ): Promise<GivenSteps> {
    const values = new Map<string, unknown[]>();
    for (const { signal, value } of signals) {
      const stored: unknown = JSON.parse(await signalToStore(signal, value));
      values.set(signal.name, [...(values.get(signal.name) ?? []), stored]);
    }
    return new GivenSteps(outputs, values, await toMemberEnds(parents), tokens);
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
    return [...this.#known.values()];
  }

  async record(step: StepToRecord): Promise<RecordedStep> {
    const { name, kind, output, error, attempts, delayMs, until, ended } = step;
    if ((kind === 'wait' || kind === 'first') && !ended) {
      this.#waiting.add(name);
      return { leftMs: undefined };
    }
    const stored = output === undefined ? undefined : JSON.parse(output);
    const noted = { name, kind, signal: null, output: stored, error: error ?? null, delayMs, until };
    this.#note(noted, ended, attempts);
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
    this.#note({ name, kind, signal, output, error: null, delayMs: undefined, until: undefined }, true);
    return { type: 'received', value: output };
  }

  async check(job: JobDefinition, entries: readonly ChildEntry<JobDefinition>[]): Promise<NewJob[]> {
    return await Promise.all(entries.map(({ payload, ...settings }) => newJob(job, payload, settings)));
  }

  async enqueue({ step, jobs, toStep }: ChildrenToEnqueue): Promise<EnqueuedChildren> {
    const batch = ++this.#lastBatch;
    const ids = jobs.map(({ kind }) => {
      const id = ++this.#lastId;
      this.#enqueued.push({ step, id, kind });
      return id;
    });
    const children = { batch, ids };
    await this.record(toStep(children));
    return children;
  }

  fit(given: KnownStep, kind: StepKind): KnownStep {
    const { name, output } = given;
    const error = this.#errors.get(name);
    switch (kind) {
      case 'wait':
        return error === undefined ? given : { ...given, output: this.#failedChild(name, error) };
      case 'first':
        if (error !== undefined) {
          return { ...given, output: { key: '', value: this.#failedChild(name, error) } };
        }
        if (typeof Reflect.get(Object(output), 'key') === 'string') return given;
        throw notOf(name, 'step.first', '{ key, value }, or the Error of a child', output);
      case 'enqueue': {
        const ids = idsIn(output);
        if (error !== undefined || ids === undefined) {
          throw notOf(name, 'a step that enqueues jobs', '{ id } or { ids }', error ?? output);
        }
        return { ...given, output: { batch: ++this.#lastBatch, ids } };
      }
      case 'signal':
      case 'sleep':
        if (error === undefined) return given;
        throw notOf(name, `a ${kind}, which cannot fail`, 'what it has returned', error);
      default:
        return given;
    }
  }

  /** The child that a wait fails for: the one that the error names, or the last that this run enqueued. */
  #failedChild(name: string, error: Error): object {
    if (error instanceof ChildFailedError) {
      const { jobId: id, kind, state, reason } = error;
      return { id, kind, state, reason };
    }
    const child =
      this.#enqueued.find(({ step }) => name === `${step}: end`) ?? this.#enqueued.at(-1) ?? UNKNOWN_CHILD;
    return { id: child.id, kind: child.kind, state: 'discarded', reason: error.message };
  }

  /** Children never run here: what they return is given under the name of the step that waits. */
  async waitFor(): Promise<boolean> {
    return true;
  }

  async reopen(): Promise<ReadonlySet<number>> {
    return new Set();
  }

  async ends(batchIds: readonly number[], kind?: string): Promise<readonly MemberEnd[]> {
    if (!batchIds.includes(PARENTS)) return [];
    return this.#parents.filter((parent) => kind === undefined || parent.kind === kind);
  }

  async waited(): Promise<Waited> {
    const failed = this.#parents.filter(({ state }) => state !== 'completed').length;
    return { batchIds: [PARENTS], total: this.#parents.length, failed };
  }

  undoFailed(): void {}

  async token(claims: TokenClaims): Promise<string> {
    return await tokensFor('step.token', this.#tokens).make(claims);
  }

  #note(step: RunStep, ended: boolean, attempts = 1): void {
    const { name, kind, signal, output, error } = step;
    this.#waiting.delete(name);
    this.#recorded.set(name, step);
    const known = knownStep(name, output, error);
    this.#known.set(name, { ...known, kind, signal, attempts, endedAt: ended ? known.endedAt : null });
  }
}

/** It is over, whatever it is in the code; with an error it has failed for good. */
function givenStep(name: string, output: unknown): KnownStep {
  if (output instanceof Error) return knownStep(name, undefined, describeThrown(output));
  return knownStep(name, output === undefined ? undefined : storedOutput(name, output), null);
}

function knownStep(name: string, output: unknown, error: StepErrorRecord | null): KnownStep {
  const at = new Date();
  return {
    name,
    kind: undefined,
    signal: null,
    output,
    error,
    attempts: 1,
    until: null,
    leftMs: 0,
    trace: null,
    startedAt: at,
    endedAt: at,
  };
}

/** Of a job that an earlier attempt is to have enqueued. */
const UNKNOWN_CHILD = { id: 0, kind: 'unknown' };

/** The ids in what was given for a step that enqueues jobs: as it returns them, or as they are recorded. */
function idsIn(output: unknown): readonly unknown[] | undefined {
  if (Array.isArray(output)) return output;
  const { id, ids } = Object(output);
  if (Array.isArray(ids)) return ids;
  return typeof id === 'number' ? [id] : undefined;
}

function notOf(name: string, what: string, wanted: string, given: unknown): TypeError {
  const got = given instanceof Error ? `the error '${given.message}'` : shown(given);
  return new TypeError(`runHandler: the step '${name}' is ${what}: give it ${wanted}, got ${got}`);
}

function storedOutput(name: string, output: unknown): unknown {
  try {
    return JSON.parse(toStoredJson(output));
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    throw new TypeError(`runHandler: the output of the step '${name}' cannot be stored: ${error.message}`);
  }
}
