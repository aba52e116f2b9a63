import { describeThrown } from '../../../core/job/describe-error.ts';
import { checkOptions, namesOf } from '../../../core/job/known-options.ts';
import {
  checkBoolean,
  checkDate,
  checkDurationMs,
  checkObject,
  checkStorable,
  checkText,
  MAX_NAME_BYTES,
} from '../../../core/job/limits.ts';
import { shown } from '../../../core/job/shown.ts';
import { QueueError } from '../../../errors.ts';
import type { Child } from '../job/child.ts';
import type { SignalDefinition } from '../job/define-signal.ts';
import type { FirstOptions, FirstSource, FirstSources } from '../job/first.ts';
import { signalValue } from '../job/signal-value.ts';
import type { StepErrorRecord } from '../schema/queue-steps.ts';
import { type AttemptSteps, isOver, type KnownStep, MAX_WAIT_MS } from './attempt-steps.ts';
import { checkChild, childFailed, type FailedChild, type StepChildren } from './step-children.ts';

const OPTIONS = namesOf<FirstOptions>({ cancelRest: true });

/** What a step waits for, told apart. */
type Source = SignalSource | ChildSource | TimeSource;

interface SignalSource {
  readonly key: string;
  readonly type: 'signal';
  readonly signal: SignalDefinition;
}

interface ChildSource {
  readonly key: string;
  readonly type: 'child';
  readonly child: Child;
}

type TimeSource = { readonly key: string; readonly type: 'time' } & (
  | { readonly delayMs: number }
  | { readonly until: Date }
);

/** What has come first, as it is recorded. */
export interface Decision {
  readonly key: string;
  readonly value?: unknown;
}

/**
 * A step that waits for the first of several. Each signal and each child is asked in turn, by the statements
 * of `waitForSignal` and `waitForJob`. These say that the job waits to those who send or end it, so nothing
 * that comes between a question and the end of the attempt is missed. A signal that is there is recorded by
 * the statement that finds it.
 */
export class FirstStep {
  readonly #steps: AttemptSteps;
  readonly #children: StepChildren;

  constructor(steps: AttemptSteps, children: StepChildren) {
    this.#steps = steps;
    this.#children = children;
  }

  async first(name: string, given: FirstSources, options: FirstOptions): Promise<Decision> {
    const { cancelRest = false } = checkOptions(`step '${name}': options`, options, OPTIONS);
    const sources = sourcesOf(name, given);
    checkBoolean(`step '${name}': cancelRest`, cancelRest);
    return await this.#steps.step(name, 'first', async (found) => {
      if (isOver(found)) return await this.#replayed(found, sources);
      // A deploy may have added a time to it, which counts from now, or have taken away what is recorded.
      const mayBeTimed = found === undefined || sources.some(({ type }) => type === 'time');
      const leftMs = mayBeTimed
        ? (this.#steps.leftMs(found) ?? (await this.#recordWait(name, sources)))
        : undefined;
      const isOverdue = leftMs !== undefined && leftMs <= 0;
      const due = isOverdue ? sourceOver(sources, found, leftMs) : undefined;
      for (const source of sources) {
        const unwanted = cancelRest ? childrenBeside(source, sources) : [];
        const decision = await this.#ask(name, source, source === due, unwanted);
        if (decision === undefined) continue;
        return await this.#valued(decision, sources, name);
      }
      return await this.#steps.wait(name, leftMs === undefined ? null : Math.min(leftMs, MAX_WAIT_MS));
    });
  }

  /** What a source has to say; `undefined`: nothing yet, and the job is known to wait for it. */
  async #ask(
    name: string,
    source: Source,
    isDue: boolean,
    unwanted: readonly number[],
  ): Promise<Decision | undefined> {
    const { key } = source;
    switch (source.type) {
      case 'time':
        return isDue ? await this.#record(name, { key }, unwanted) : undefined;
      case 'signal':
        return await this.#receive(name, source, unwanted);
      case 'child': {
        const end = await this.#children.endOf(name, source.child);
        if (end === undefined) return undefined;
        if (end.state === 'completed') return await this.#record(name, { key, value: end.output }, unwanted);
        const error = childFailed(end);
        await this.#record(name, { key, value: end }, unwanted, describeThrown(error));
        throw error;
      }
    }
  }

  async #receive(
    name: string,
    { key, signal }: SignalSource,
    unwanted: readonly number[],
  ): Promise<Decision | undefined> {
    const wanted = { name, signal: signal.name, timeoutMs: undefined, first: key };
    const received = await this.#steps.receive(wanted, unwanted);
    if (received.type !== 'received') return undefined;
    this.#steps.attempt.noteProgress();
    this.#steps.waitsNoLonger(name);
    // The statement writes it in this shape.
    return received.value as Decision;
  }

  /** Records that it waits, and until when; returns how long that is. */
  async #recordWait(name: string, sources: readonly Source[]): Promise<number | undefined> {
    const { id, fence } = this.#steps.attempt.job;
    const delays = sources.flatMap((source) => ('delayMs' in source ? source.delayMs : []));
    const dates = sources.flatMap((source) => ('until' in source ? source.until.getTime() : []));
    const recorded = await this.#steps.store.record({
      id,
      fence,
      name,
      kind: 'first',
      delayMs: delays.length === 0 ? undefined : Math.min(...delays),
      until: dates.length === 0 ? undefined : new Date(Math.min(...dates)),
      trace: this.#steps.traceOf(name),
      tookMs: 0,
      ended: false,
    });
    if (recorded === undefined) throw this.#steps.lost();
    this.#steps.attempt.noteProgress();
    return recorded.leftMs;
  }

  async #record(
    name: string,
    decision: Decision,
    unwanted: readonly number[],
    error?: StepErrorRecord,
  ): Promise<Decision> {
    const startMs = performance.now();
    this.#steps.waitsNoLonger(name);
    await this.#steps.record({ name, kind: 'first', output: decision, startMs, error }, unwanted);
    return decision;
  }

  async #replayed({ name, output, error }: KnownStep, sources: readonly Source[]): Promise<Decision> {
    // As it was recorded.
    const decision = output as Decision;
    if (error !== null) throw childFailed(decision.value as FailedChild);
    return await this.#valued(decision, sources, name);
  }

  /** With the value as the schema of its signal gives it. */
  async #valued({ key, value }: Decision, sources: readonly Source[], name: string): Promise<Decision> {
    const source = sources.find((source) => source.key === key);
    if (source === undefined) {
      const { kind } = this.#steps.attempt.job;
      throw new QueueError(
        `The step '${name}' of '${kind}' was decided by '${key}', which it no longer waits for in ` +
          'the code. Rename the step: a new name is a new step',
      );
    }
    return { key, value: source.type === 'signal' ? await signalValue(source.signal, value) : value };
  }
}

/** For callers without TypeScript, too. @throws TypeError | RangeError */
function sourcesOf(name: string, given: FirstSources): readonly Source[] {
  const sources = Object.entries(checkObject(`step '${name}': sources`, given)).map(([key, source]) =>
    sourceOf(`step '${name}': ${key}`, checkStorable(`step '${name}': a key`, key), source),
  );
  if (sources.length === 0) throw new TypeError(`step '${name}' has nothing to wait for`);
  const signals = sources.flatMap((source) => (source.type === 'signal' ? source.signal.name : []));
  const twice = signals.find((signal, at) => signals.indexOf(signal) !== at);
  if (twice !== undefined) {
    throw new TypeError(`step '${name}' waits for the signal '${twice}' twice; once is enough`);
  }
  return sources;
}

function sourceOf(what: string, key: string, source: FirstSource): Source {
  const given = checkObject(what, source);
  if ('delayMs' in given) {
    return { key, type: 'time', delayMs: checkDurationMs(`${what}: delayMs`, given.delayMs, 0, MAX_WAIT_MS) };
  }
  if ('until' in given) return { key, type: 'time', until: checkDate(`${what}: until`, given.until) };
  if ('batchId' in given) return { key, type: 'child', child: checkChild(given) };
  if ('schema' in given) {
    checkText(`${what}: the name of the signal`, given.name, MAX_NAME_BYTES);
    return { key, type: 'signal', signal: given };
  }
  throw new TypeError(`${what} must be a signal, a child, { delayMs } or { until }, got ${shown(source)}`);
}

/**
 * Which of the times is over. `leftMs` is how far away the first of them is: 0 or less. Only that time is
 * recorded, and not whose it is, while each run of the handler may give other delays and dates.
 * So it is the source that comes nearest to what is recorded. A date fits also where it is as far away now as
 * at first: then it is counted from the present, or a test has moved what is recorded.
 */
function sourceOver(
  sources: readonly Source[],
  found: KnownStep | undefined,
  leftMs: number,
): Source | undefined {
  const times = sources.filter((source) => source.type === 'time');
  const delays = times
    .flatMap((source) => ('delayMs' in source ? source : []))
    .toSorted((a, b) => a.delayMs - b.delayMs);
  const dates = times
    .flatMap((source) => ('until' in source ? source : []))
    .toSorted((a, b) => a.until.getTime() - b.until.getTime());
  const [shortest] = delays;
  const [earliest] = dates;
  if (found?.until instanceof Date) {
    const untilMs = found.until.getTime();
    const waitMs = untilMs - found.startedAt.getTime();
    // All are rounded to milliseconds.
    const past = (ms: number) => Math.max(0, ms - 1);
    const offMs = (source: TimeSource) => {
      if ('delayMs' in source) return past(source.delayMs - waitMs);
      const dateMs = source.until.getTime();
      return Math.min(past(dateMs - untilMs), Math.abs(dateMs - (untilMs - leftMs) - waitMs));
    };
    // Of two that fit, the date: it is the same in each run, while a delay may be shorter now than it was.
    return [...dates, ...delays].toSorted((a, b) => offMs(a) - offMs(b))[0];
  }
  if (earliest === undefined || (leftMs === 0 && shortest?.delayMs === 0)) return shortest;
  const nowMs = earliest.until.getTime() - leftMs;
  return dates.find(({ until }) => until.getTime() <= nowMs);
}

/** The batches of the other children. */
function childrenBeside(winner: Source, sources: readonly Source[]): readonly number[] {
  return sources.flatMap((source) =>
    source.type === 'child' && source !== winner ? source.child.batchId : [],
  );
}
