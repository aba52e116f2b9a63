import { UnknownKindError } from '../errors.ts';
import { type Backoff, exponentialBackoff } from './backoff.ts';
import {
  checkBoolean,
  checkDurationMs,
  checkInteger,
  checkObject,
  checkText,
  MAX_ATTEMPTS,
  MAX_NAME_BYTES,
  MAX_PRIORITY,
  MAX_TIMER_MS,
} from './limits.ts';
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

/** What {@link defineJob} may be told about a kind of job. */
export interface JobOptions<
  TPayload extends StandardSchema | undefined = StandardSchema | undefined,
  TOutput extends StandardSchema | undefined = StandardSchema | undefined,
> {
  /**
   * The payload's schema (zod, valibot, arktype, …), or `unvalidated<T>()`. Checked on enqueue and again when a worker claims
   * the job. What is stored is the schema's *input* as JSON; a handler gets its *output*.
   * @default none: the job has no payload
   */
  payload?: TPayload;
  /**
   * The schema of what the handler returns. An output that it refuses is a failed attempt.
   * @default none: any JSON value is stored as it is
   */
  output?: TOutput;
  /** Which queue its jobs go to. @default 'default' */
  queue?: string | undefined;
  /** 0–9, smaller first. @default 5 */
  priority?: number | undefined;
  /** How many attempts a job has, 1–10,000. A worker that dies spends one. @default 20 */
  maxAttempts?: number | undefined;
  /**
   * How long one attempt may take, in milliseconds, at least 1. Then the handler's signal is aborted and the attempt has failed,
   * even if the handler goes on.
   * @default none: an attempt may take for ever
   */
  timeoutMs?: number | undefined;
  /** How long to wait after a failed attempt. @default exponentialBackoff() */
  backoff?: Backoff | undefined;
  /**
   * Whether a completed job leaves a row in `queue_results`. Discarded and cancelled jobs always do: somebody will ask.
   * @default true
   */
  keepResult?: boolean | undefined;
}

/**
 * A kind of job: its name, what its payload and output are, and how its jobs are treated. Made by {@link defineJob}, shared
 * by the code that enqueues and the code that works, and free of both.
 */
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
  readonly backoff: Backoff;
  readonly keepResult: boolean;
}

/**
 * What `enqueue` takes for a definition: its schema's input, or `undefined` for a job without payload; `unknown` where it is
 * not known whether the definition has a schema.
 */
export type PayloadInput<TJob extends JobDefinition> = TJob['payload'] extends StandardSchema
  ? SchemaInput<TJob['payload']>
  : TJob['payload'] extends undefined
    ? undefined
    : unknown;

/** What a handler gets: the schema's output. */
export type Payload<TJob extends JobDefinition> = TJob['payload'] extends StandardSchema
  ? SchemaOutput<TJob['payload']>
  : TJob['payload'] extends undefined
    ? undefined
    : unknown;

/** What a handler returns, and what `find` and `list` give back: the output schema's input, or anything without one. */
export type OutputInput<TJob extends JobDefinition> = TJob['output'] extends StandardSchema
  ? SchemaInput<TJob['output']>
  : unknown;

/**
 * Defines a kind of job. The kind is a stable text: it is stored with every job, so renaming it strands the jobs that wait.
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
>(kind: TKind, options: JobOptions<TPayload, TOutput> = {}): JobDefinition<TKind, TPayload, TOutput> {
  checkText('defineJob: kind', kind, MAX_NAME_BYTES);
  const what = (option: string) => `defineJob('${kind}'): ${option}`;
  checkObject(what('its options'), options);
  for (const name of ['payload', 'output'] as const) {
    if (options[name] !== undefined && !isStandardSchema(options[name])) {
      throw new TypeError(
        `${what(name)} must be a Standard Schema (zod, valibot, arktype, …) or unvalidated<T>()`,
      );
    }
  }
  const { timeoutMs } = options;
  const backoff = options.backoff ?? exponentialBackoff();
  if (typeof backoff !== 'function') {
    throw new TypeError(`${what('backoff')} must be a function, got ${shown(backoff)}`);
  }
  return Object.freeze({
    kind,
    // An absent schema is `undefined` in the type parameter as well, which TypeScript cannot follow through the default.
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
    timeoutMs:
      timeoutMs === undefined ? undefined : checkDurationMs(what('timeoutMs'), timeoutMs, 1, MAX_TIMER_MS),
    backoff,
    keepResult: checkBoolean(what('keepResult'), options.keepResult ?? true),
  });
}

/**
 * For callers without TypeScript: a kind's name where its definition is needed.
 *
 * @throws UnknownKindError unless `value` was made by {@link defineJob}
 */
export function checkDefinition(caller: string, value: JobDefinition): void {
  if (
    typeof value !== 'object' ||
    value === null ||
    typeof value.kind !== 'string' ||
    !('maxAttempts' in value)
  ) {
    const got = typeof value === 'string' ? `the text ${shown(value)}` : shown(value);
    throw new UnknownKindError(`${caller} takes a job definition, as defineJob() makes it; got ${got}`);
  }
}
