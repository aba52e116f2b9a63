import type { JobRecord, StepRecord } from '../../index.ts';
import { type OwnColumn, ownColumnsOf } from '../../internal.ts';
import { ownText } from '../dashboard/own-text.ts';
import { type JobOfValue, type Show, type ShownField, shownText } from '../dashboard/show.ts';
import type { Project } from './project/open-project.ts';
import { json } from './terminal/printable.ts';

type Field = ShownField['field'];

/** The part of a job that has a value: an own column, or a step. */
type PartOfJob = Partial<Pick<ShownField, 'column' | 'step'>>;
/** What stands for a value in a document. */
type Change = (name: string, field: Field, value: unknown, text: string, column?: string) => unknown;

/** What is printed in the place of a value that is hidden. */
const HIDDEN = 'hidden';
/** As `show` knows who looks. */
const ACCESS = { actor: 'drizzle-queue', can: 'write' } as const;
const JSON_FIELDS = ['payload', 'output', 'metadata', 'progress'] as const;

/**
 * What is printed of the values of jobs. `dashboard.show` of queue.config.ts decides about each of them, as
 * it does in the dashboard; without it, and without a config, they are printed as they are.
 */
export class ShownValues {
  readonly #show: Show | undefined;
  readonly #own: readonly OwnColumn[];

  constructor({ config, queue }: Pick<Project, 'config' | 'queue'>) {
    this.#show = config?.dashboard?.show;
    this.#own = ownColumnsOf(queue.tables.queueJobs);
  }

  /** The own columns of a job, with their values. */
  ownOf(job: JobRecord): [column: string, value: unknown][] {
    // A record has its own columns beside the others.
    return this.#own.map(({ key }) => [key, Reflect.get(job, key)]);
  }

  /** A text that stands for a value. */
  text(job: JobRecord | undefined, field: Field, text: string): string {
    return this.#ask(job && this.#jobOf(job), field, text) ?? HIDDEN;
  }

  /** The value of an own column. */
  own(job: JobRecord, column: string, value: unknown): string {
    const text = ownText(value);
    const shown = this.#ask(this.#jobOf(job), 'own', text, { column });
    return shown === text ? json(value) : (shown ?? HIDDEN);
  }

  /** A value of JSON: in a line, or indented by this many spaces. */
  value(job: JobRecord, field: Field, value: unknown, space?: number): string {
    if (this.#show === undefined) return json(value, space);
    const text = json(value);
    const shown = this.#ask(this.#jobOf(job), field, text);
    return shown === text ? json(value, space) : (shown ?? HIDDEN);
  }

  /**
   * A job for a program. What is hidden is `null`, and `hidden` names it; what `show` has changed is the JSON
   * that it has made of it, or else a text.
   */
  document(job: JobRecord): Readonly<Record<string, unknown>> {
    return this.#show === undefined ? { ...job } : this.#changed({ ...job }, this.#jobOf(job));
  }

  /** The name of a step, or a text of its error. */
  ofStep(job: JobRecord, field: 'step' | 'errorName' | 'error', text: string, step: string): string {
    return this.#ask(this.#jobOf(job), field, text, { step }) ?? HIDDEN;
  }

  /** The output of a step, in a line. */
  stepOutput(job: JobRecord, { name, output }: StepRecord): string {
    return this.#ask(this.#jobOf(job), 'output', json(output), { step: name }) ?? HIDDEN;
  }

  /** A step for a program, as {@link ShownValues.document}. */
  step(job: JobRecord, step: StepRecord): Readonly<Record<string, unknown>> {
    if (this.#show === undefined) return { ...step };
    const { name, output, error } = step;
    const hidden = new Set<string>();
    const change = this.#changer(hidden, this.#jobOf(job), name);
    const changed = {
      ...step,
      name: change('name', 'step', name, name),
      ...(output !== undefined && { output: change('output', 'output', output, json(output)) }),
      ...(error !== null && { error: changedError(change, 'error', { ...error }) }),
    };
    return hidden.size === 0 ? changed : { ...changed, hidden: [...hidden] };
  }

  /** The same for a schedule, which has the name, the kind, the queue and the payload of its jobs. */
  schedule<T extends { readonly name: string; readonly kind: string; readonly queue: string }>(
    schedule: T,
  ): Readonly<Record<string, unknown>> {
    if (this.#show === undefined) return { ...schedule };
    const { kind, queue } = schedule;
    const changed = this.#changed({ ...schedule }, { id: 0, kind, queue, own: {} });
    return { ...changed, name: this.text(undefined, 'schedule', schedule.name) };
  }

  /** A flow for a program, as {@link ShownValues.document}: why it was cancelled may be secret. */
  flow<T extends { readonly cancelReason: string | null }>(flow: T): Readonly<Record<string, unknown>> {
    const { cancelReason } = flow;
    if (cancelReason === null) return { ...flow };
    const shown = this.#ask(undefined, 'error', cancelReason);
    return { ...flow, cancelReason: shown, ...(shown === null && { hidden: ['cancelReason'] }) };
  }

  /** What `queue.check` or `queue.vitals` says. */
  finding<T extends { readonly message: string; readonly fix: string; readonly worker?: string }>(
    found: T,
  ): T {
    const { message, fix, worker } = found;
    return {
      ...found,
      ...(worker !== undefined && { worker: this.text(undefined, 'finding', worker) }),
      message: this.text(undefined, 'finding', message),
      fix: fix === '' ? fix : this.text(undefined, 'finding', fix),
    };
  }

  #changed(record: Record<string, unknown>, job: JobOfValue): Record<string, unknown> {
    const hidden = new Set<string>();
    const change = this.#changer(hidden, job);
    const changed = { ...record };
    for (const field of JSON_FIELDS) {
      const value = record[field];
      if (value === undefined || (value === null && field !== 'payload')) continue;
      changed[field] = change(field, field, value, json(value));
    }
    for (const field of ['uniqueKey', 'group'] as const) {
      const value = record[field];
      if (typeof value === 'string') changed[field] = change(field, field, value, value);
    }
    if (typeof record.cancelReason === 'string')
      changed.cancelReason = change('cancelReason', 'error', record.cancelReason, record.cancelReason);
    for (const [column, value] of Object.entries(job.own))
      changed[column] = change(column, 'own', value, ownText(value), column);
    if (Array.isArray(record.errors))
      changed.errors = record.errors.map((error) => changedError(change, 'errors', error));
    return hidden.size === 0 ? changed : { ...changed, hidden: [...hidden] };
  }

  /** Asks about one value after the other, and notes the names of those that are hidden. */
  #changer(hidden: Set<string>, job: JobOfValue, step?: string): Change {
    return (name, field, value, text, column) => {
      const shown = this.#ask(job, field, text, { column, step });
      if (shown === text) return value;
      if (shown === null) hidden.add(name);
      return shown === null ? null : typeof value === 'string' ? shown : parsed(shown);
    };
  }

  #jobOf(job: JobRecord): JobOfValue {
    const { id, kind, queue } = job;
    return { id, kind, queue, own: Object.fromEntries(this.ownOf(job)) };
  }

  #ask(
    job: JobOfValue | undefined,
    field: Field,
    text: string,
    { column, step }: PartOfJob = {},
  ): string | null {
    const asked = { job, field, text, cut: false, access: ACCESS };
    return shownText(this.#show, {
      ...asked,
      ...(column !== undefined && { column }),
      ...(step !== undefined && { step }),
    });
  }
}

function changedError(
  change: Change,
  at: string,
  error: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { name, message, stack } = error;
  return {
    ...error,
    name: change(`${at}.name`, 'errorName', name, String(name)),
    message: change(`${at}.message`, 'error', message, String(message)),
    ...(stack !== undefined && { stack: change(`${at}.stack`, 'error', stack, String(stack)) }),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
