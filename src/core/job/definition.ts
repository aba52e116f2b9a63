import { UnknownKindError } from '../../errors.ts';
import { type Backoff, exponentialBackoff } from './backoff.ts';
import { checkOptions, namesOf } from './known-options.ts';
import {
  checkDurationMs,
  checkInteger,
  checkText,
  MAX_ATTEMPTS,
  MAX_NAME_BYTES,
  MAX_PRIORITY,
  MAX_TIMER_MS,
} from './limits.ts';
import type { ReturnFromJson } from './return-from-json.ts';
import { shown } from './shown.ts';
import {
  isStandardSchema,
  type SchemaInput,
  type SchemaOutput,
  type StandardSchema,
} from './standard-schema.ts';

/** The queue of jobs whose definition and enqueue name none. */
export const DEFAULT_QUEUE = 'default';
export const DEFAULT_PRIORITY = 5;
export const DEFAULT_MAX_ATTEMPTS = 20;
/** 365 days. */
const MAX_DEADLINE_MS = 365 * 24 * 3_600_000;

/** What a completed job leaves in `queue_results`: see {@link JobOptions.keepResult}. */
export type KeepResult = boolean | 'outcome';

/** The options of {@link defineJob}. */
export interface JobOptions<
  TPayload extends StandardSchema | undefined = StandardSchema | undefined,
  TOutput extends StandardSchema | undefined = StandardSchema | undefined,
  TKeep extends KeepResult = KeepResult,
> {
  /**
   * The payload's schema (zod, valibot, arktype, …), or `unvalidated<T>()`. It checks the payload on enqueue
   * and again after the claim. The database stores the schema's *input* as JSON; a handler gets its *output*.
   * A schema that refuses what comes back from JSON, such as `z.date()`, does not compile.
   * @default none: the job has no payload
   */
  payload?: TPayload;
  /** What the handler must return; any other output fails the attempt. @default none: any JSON value */
  output?: TOutput;
  /** The queue of its jobs. @default 'default' */
  queue?: string | undefined;
  /** 0–9, smaller first. @default 5 */
  priority?: number | undefined;
  /** How many attempts a job has, 1–10,000. The death of its worker spends one. @default 20 */
  maxAttempts?: number | undefined;
  /**
   * How long one attempt may take, in milliseconds, 1–2,147,483,647 (24 days). Then the handler's signal is
   * aborted and the attempt fails, even if the handler goes on. @default none
   */
  timeoutMs?: number | undefined;
  /**
   * How long a job may take in all, from its enqueue, in milliseconds, 1 to 365 days: attempts,
   * backoff and waits. Then the handler's signal is aborted with a {@link JobDeadlineError}, and the job is
   * discarded as soon as the handler returns or throws; one that has completed its work is completed. A job
   * that waits is due then; one that waits for others before it begins is discarded. With workflows the
   * handler of a late job is called, so that it can undo; without, a late job is discarded before it begins.
   * By the database's clock.
   * @default none
   */
  deadlineMs?: number | undefined;
  /** How long to wait after a failed attempt. @default exponentialBackoff() */
  backoff?: Backoff | undefined;
  /**
   * Whether a completed job leaves a row in `queue_results`, as all others do. `'outcome'`: one without the
   * payload, which need not be written a second time; all else is in it, and the payload is read as
   * `undefined`. Discarded and cancelled jobs keep theirs, so that they can be redriven.
   * @default true
   */
  keepResult?: TKeep | undefined;
  /**
   * The group of a job, by the payload as its enqueue is given it: a text of 1–200 bytes. For queues with
   * groups: see {@link limitsIn}. Not called where the enqueue names the `group`.
   * @default none: jobs without a group of their own are one group
   */
  group?: ((payload: InputOf<TPayload>) => string) | undefined;
  /**
   * What a job counts for in rates, by the payload as its enqueue is given it: a whole number, 1–10,000. For
   * queues with groups or rates. Not called where the enqueue gives the `cost`.
   * @default 1
   */
  cost?: ((payload: InputOf<TPayload>) => number) | undefined;
}

const OPTIONS = namesOf<JobOptions>({
  payload: true,
  output: true,
  queue: true,
  priority: true,
  maxAttempts: true,
  timeoutMs: true,
  deadlineMs: true,
  backoff: true,
  keepResult: true,
  group: true,
  cost: true,
});

/** What an enqueue takes for a schema. */
type InputOf<TPayload extends StandardSchema | undefined> = TPayload extends StandardSchema
  ? SchemaInput<TPayload>
  : undefined;

/** A kind of job, made by {@link defineJob} and shared by the code that enqueues and the code that works. */
export interface JobDefinition<
  TKind extends string = string,
  TPayload extends StandardSchema | undefined = StandardSchema | undefined,
  TOutput extends StandardSchema | undefined = StandardSchema | undefined,
> {
  readonly kind: TKind;
  readonly payload: TPayload;
  readonly output: TOutput;
  readonly queue: string;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly timeoutMs: number | undefined;
  readonly deadlineMs?: number | undefined;
  readonly backoff: Backoff;
  readonly keepResult: KeepResult;
  /** For payloads of this definition alone, so that a definition of any payload is a `JobDefinition`. */
  readonly group: ((payload: never) => string) | undefined;
  /** As `group`. */
  readonly cost: ((payload: never) => number) | undefined;
}

/**
 * A definition as {@link defineJob} makes it. Only where its results may lack the payload does its type say
 * how they are kept, and then never `false`: that tells it from a type of which this is not known.
 */
export type DefinedJob<
  TKind extends string,
  TPayload extends StandardSchema | undefined,
  TOutput extends StandardSchema | undefined,
  TKeep extends KeepResult,
> = 'outcome' extends TKeep
  ? JobDefinition<TKind, TPayload, TOutput> & { readonly keepResult: Exclude<TKeep, false> }
  : JobDefinition<TKind, TPayload, TOutput>;

/** Whether the payload of a completed job of the kind may be missing. */
export type MayLackPayload<TJob extends JobDefinition> = false extends TJob['keepResult']
  ? false
  : 'outcome' extends TJob['keepResult']
    ? true
    : false;

/**
 * What `enqueue` takes: the payload schema's input, `undefined` for a job without payload, or `unknown` when
 * it is not known whether the definition has a schema.
 */
export type PayloadInput<TJob extends JobDefinition> = TJob['payload'] extends StandardSchema
  ? SchemaInput<TJob['payload']>
  : TJob['payload'] extends undefined
    ? undefined
    : unknown;

/** What a handler gets: the payload schema's output. */
export type Payload<TJob extends JobDefinition> = TJob['payload'] extends StandardSchema
  ? SchemaOutput<TJob['payload']>
  : TJob['payload'] extends undefined
    ? undefined
    : unknown;

/** What a handler, `find` and `list` return: the output schema's input; without a schema, anything. */
export type OutputInput<TJob extends JobDefinition> = TJob['output'] extends StandardSchema
  ? SchemaInput<TJob['output']>
  : unknown;

/**
 * Defines a kind of job. Every job stores its kind, so renaming it strands the jobs that wait.
 *
 * ```ts
 * export const sendReceipt = defineJob('send-receipt', {
 *   payload: z.object({ orderId: z.number() }),
 *   output: z.object({ messageId: z.string() }),
 *   queue: 'mail', maxAttempts: 5, timeoutMs: 30_000,
 * });
 * ```
 *
 * @throws TypeError | RangeError when an option is outside its range
 */
export function defineJob<
  const TKind extends string,
  TPayload extends StandardSchema | undefined = undefined,
  TOutput extends StandardSchema | undefined = undefined,
  TKeep extends KeepResult = true,
>(
  kind: TKind,
  options: JobOptions<TPayload, TOutput, TKeep> & ReturnFromJson<TPayload, TOutput> = {},
): DefinedJob<TKind, TPayload, TOutput, TKeep> {
  checkText('defineJob: kind', kind, MAX_NAME_BYTES);
  const what = (option: string) => `defineJob('${kind}'): ${option}`;
  checkOptions(what('options'), options, OPTIONS);
  for (const name of ['payload', 'output'] as const) {
    if (options[name] !== undefined && !isStandardSchema(options[name])) {
      throw new TypeError(
        `${what(name)} must be a Standard Schema (zod, valibot, arktype, …) or unvalidated<T>()`,
      );
    }
  }
  const duration = (name: 'timeoutMs' | 'deadlineMs', most: number) =>
    options[name] === undefined ? undefined : checkDurationMs(what(name), options[name], 1, most);
  for (const name of ['backoff', 'group', 'cost'] as const) {
    if (options[name] === undefined || typeof options[name] === 'function') continue;
    const given =
      name === 'backoff' ? '' : ' of the payload (the value of one job: an option of its enqueue)';
    throw new TypeError(`${what(name)} must be a function${given}, got ${shown(options[name])}`);
  }
  const keepResult = options.keepResult ?? true;
  if (typeof keepResult !== 'boolean' && keepResult !== 'outcome') {
    throw new TypeError(`${what('keepResult')} must be true, false or 'outcome', got ${shown(keepResult)}`);
  }
  const definition: JobDefinition<TKind, TPayload, TOutput> = {
    kind,
    // An absent schema is `undefined` in the type, too; TypeScript cannot follow that through the default.
    payload: options.payload as TPayload,
    output: options.output as TOutput,
    queue: checkText(what('queue'), options.queue ?? DEFAULT_QUEUE, MAX_NAME_BYTES),
    priority: checkInteger(what('priority'), options.priority ?? DEFAULT_PRIORITY, 0, MAX_PRIORITY),
    maxAttempts: checkInteger(
      what('maxAttempts'),
      options.maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
      1,
      MAX_ATTEMPTS,
    ),
    timeoutMs: duration('timeoutMs', MAX_TIMER_MS),
    deadlineMs: duration('deadlineMs', MAX_DEADLINE_MS),
    backoff: options.backoff ?? exponentialBackoff(),
    keepResult,
    group: options.group,
    cost: options.cost,
  };
  // The type says what `keepResult` is.
  return Object.freeze(definition) as DefinedJob<TKind, TPayload, TOutput, TKeep>;
}

/** For callers without TypeScript. @throws UnknownKindError unless {@link defineJob} made `value` */
export function checkDefinition(caller: string, value: JobDefinition): void {
  if (
    typeof value !== 'object' ||
    value === null ||
    typeof value.kind !== 'string' ||
    !('maxAttempts' in value)
  ) {
    const got = typeof value === 'string' ? `the text ${shown(value)}` : shown(value);
    throw new UnknownKindError(`${caller} takes a job definition that defineJob() returned; got ${got}`);
  }
}
