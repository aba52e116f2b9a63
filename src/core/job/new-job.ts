import { InvalidPayloadError } from '../../errors.ts';
import { withAwaited } from './awaited.ts';
import type { JobDefinition, PayloadInput } from './definition.ts';
import { ENQUEUE_OPTIONS, type GivenOptions } from './enqueue-options.ts';
import { costOf, groupOf } from './group.ts';
import { debounceMs, type KeyRule, keyRuleOf } from './key-rule.ts';
import { checkOptions, type Key, unknownIn } from './known-options.ts';
import {
  checkBoolean,
  checkDate,
  checkDurationMs,
  checkInteger,
  checkText,
  DEFAULT_MAX_PAYLOAD_BYTES,
  MAX_ATTEMPTS,
  MAX_NAME_BYTES,
  MAX_PRIORITY,
  MAX_UNIQUE_KEY_BYTES,
} from './limits.ts';
import { toStoredJson, UnstorableValueError } from './stored-json.ts';
import { checkStoredSize } from './stored-size.ts';
import { payloadToStore } from './validate.ts';

/** A checked job, ready to be inserted. */
export interface NewJob {
  readonly queue: string;
  readonly kind: string;
  /** JSON text. */
  readonly payload: string;
  readonly priority: number;
  readonly maxAttempts: number;
  /** Milliseconds from the statement's start by the database's clock; ignored when `runAtMs` is set. */
  readonly delayMs: number;
  /** Milliseconds since 1970, or `null`. */
  readonly runAtMs: number | null;
  readonly uniqueKey: string | null;
  /** JSON text of an object. */
  readonly metadata: string;
  /** Values of the app's own columns as texts, in order; `undefined` where the column's default applies. */
  readonly own?: readonly (string | null | undefined)[];
  /** Of a queue with groups; `undefined`: none of its own. */
  readonly group?: string;
  /** `undefined`: 1. */
  readonly cost?: number;
  /** Then there is no `uniqueKey`. */
  readonly rule?: KeyRule;
  /** The batch of which it is a member. */
  readonly batch?: number;
  /** For how many batches it waits: it is due when they have ended, or after a `delayMs` that is not 0. */
  readonly blockers?: number;
}

/**
 * Checks everything that an enqueue says before anything is sent, so a refused job leaves the caller's
 * transaction usable. Returns a promise only when the payload's schema does: a bulk enqueue cannot afford a
 * turn of the event loop per job.
 *
 * @param maxPayloadBytes the largest payload as JSON text; also the limit of the metadata
 * @param also what the options may have besides
 * @param what what a message about an unknown option begins with
 * @throws InvalidPayloadError | RangeError | TypeError synchronously, or through the promise; a TypeError
 * also for a payload where the definition has none
 */
export function newJob<TJob extends JobDefinition>(
  job: TJob,
  payload: PayloadInput<TJob>,
  options: GivenOptions = NO_OPTIONS,
  maxPayloadBytes: number = DEFAULT_MAX_PAYLOAD_BYTES,
  also: readonly Key[] = NO_KEYS,
  what?: string,
): NewJob | Promise<NewJob> {
  // The condition first: in a bulk enqueue even building the message takes time.
  if (
    typeof options !== 'object' ||
    options === null ||
    unknownIn(options, ENQUEUE_OPTIONS, also) !== undefined
  ) {
    checkOptions(what ?? optionOf(job, 'options'), options, ENQUEUE_OPTIONS, also);
  }
  // Otherwise it would be stored, and the handler would get `undefined`. An absent payload is stored as null.
  if (job.payload === undefined && payload !== undefined && payload !== null) refusePayload(job);
  const { delayMs, runAt, uniqueKey, awaited } = options;
  const rule = mayHaveRule(options) ? keyRuleOf(job.kind, options) : undefined;
  if (delayMs !== undefined && runAt !== undefined) {
    throw new TypeError(`${optionOf(job, 'delayMs and runAt')} cannot be combined`);
  }
  if (awaited !== undefined) checkBoolean(optionOf(job, 'awaited'), awaited);
  const queue =
    options.queue === undefined
      ? job.queue
      : checkText(optionOf(job, 'queue'), options.queue, MAX_NAME_BYTES);
  // `defineJob` has checked the definition's own values.
  const priority = options.priority ?? job.priority;
  if (priority !== job.priority) checkInteger(optionOf(job, 'priority'), priority, 0, MAX_PRIORITY);
  const maxAttempts = options.maxAttempts ?? job.maxAttempts;
  if (maxAttempts !== job.maxAttempts)
    checkInteger(optionOf(job, 'maxAttempts'), maxAttempts, 1, MAX_ATTEMPTS);
  const made = (stored: string): NewJob => ({
    queue,
    kind: job.kind,
    payload: stored,
    priority,
    maxAttempts,
    delayMs: delayOf(job, options),
    runAtMs: runAt === undefined ? null : checkDate(optionOf(job, 'runAt'), runAt).getTime(),
    uniqueKey:
      uniqueKey === undefined || rule !== undefined
        ? null
        : checkText(optionOf(job, 'uniqueKey'), uniqueKey, MAX_UNIQUE_KEY_BYTES),
    metadata: metadataOf(job, options, maxPayloadBytes),
    // After the payload's check: the definition's functions may rely on it.
    ...groupAndCost(job, payload, options),
    ...(rule !== undefined && { rule }),
  });
  const stored = payloadToStore(job, payload, maxPayloadBytes);
  return typeof stored === 'string' ? made(stored) : stored.then(made);
}

const NO_OPTIONS: GivenOptions = {};
const NO_KEYS: readonly Key[] = [];

function mayHaveRule({ unique, debounce, throttle, replace }: GivenOptions): boolean {
  return unique !== undefined || debounce !== undefined || throttle !== undefined || replace !== undefined;
}

function delayOf(job: JobDefinition, { delayMs, debounce }: GivenOptions): number {
  if (debounce !== undefined) return debounceMs(job.kind, debounce);
  return delayMs === undefined ? 0 : checkDurationMs(optionOf(job, 'delayMs'), delayMs);
}

function metadataOf(job: JobDefinition, { metadata, awaited }: GivenOptions, maxBytes: number): string {
  const stored = metadata === undefined ? '{}' : metadataToStore(job.kind, metadata, maxBytes);
  return awaited === true ? withAwaited(stored) : stored;
}

const NEITHER: Pick<NewJob, 'group' | 'cost'> = {};

function groupAndCost(
  job: JobDefinition,
  payload: unknown,
  options: GivenOptions,
): Pick<NewJob, 'group' | 'cost'> {
  const group = groupOf(job, payload, options.group);
  const cost = costOf(job, payload, options.cost);
  if (group === undefined && cost === undefined) return NEITHER;
  return { ...(group !== undefined && { group }), ...(cost !== undefined && { cost }) };
}

function refusePayload({ kind }: JobDefinition): never {
  throw new TypeError(
    `enqueue('${kind}'): its definition has no payload, so its handler would not receive this one. ` +
      `Write defineJob('${kind}', { payload: … }) with a schema or unvalidated<T>(); ` +
      'options without a payload are enqueue(db, job, undefined, { … }), or { … } without `payload` ' +
      'in enqueueMany',
  );
}

function optionOf({ kind }: JobDefinition, option: string): string {
  return `enqueue('${kind}'): ${option}`;
}

/** @throws TypeError unless it is an object; InvalidPayloadError if it is too large or unfit for jsonb */
export function metadataToStore(
  kind: string,
  metadata: Readonly<Record<string, unknown>>,
  maxBytes: number,
): string {
  let json: string;
  try {
    json = toStoredJson(metadata);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const path = error.issue.path === '' ? 'metadata' : `metadata.${error.issue.path}`;
    throw new InvalidPayloadError(kind, [{ ...error.issue, path }]);
  }
  // Only the text tells: a Date, for example, is an object until it becomes JSON.
  if (!json.startsWith('{')) throw new TypeError(`enqueue('${kind}'): metadata must be an object`);
  checkStoredSize(kind, 'metadata', json, maxBytes);
  return json;
}

/** A job with a delay is not due; whether `runAt` has passed is for the database's clock to say. */
export function mayBeDue({ delayMs, runAtMs, rule, blockers }: NewJob): boolean {
  // Instead of the job, one that waits with its key may be due.
  return blockers === undefined && (runAtMs !== null || delayMs === 0 || rule !== undefined);
}
