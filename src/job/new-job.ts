import { InvalidPayloadError } from '../errors.ts';
import type { JobDefinition, PayloadInput } from './definition.ts';
import {
  checkDate,
  checkDurationMs,
  checkInteger,
  checkText,
  MAX_ATTEMPTS,
  MAX_NAME_BYTES,
  MAX_PRIORITY,
  MAX_UNIQUE_KEY_BYTES,
} from './limits.ts';
import { toStoredJson, UnstorableValueError } from './stored-json.ts';
import { payloadToStore } from './validate.ts';

/** What one enqueue may say differently from the job's definition. */
export interface EnqueueOptions {
  /**
   * Milliseconds until the job is due, by the database's clock, 0 to one century. Not together with `runAt`.
   * @default 0
   */
  delayMs?: number | undefined;
  /** When the job is due. A time that has passed means now, but before jobs that became due later. Not together with `delayMs`. */
  runAt?: Date | undefined;
  /** 0–9, smaller first. @default the definition's */
  priority?: number | undefined;
  /** 1–10,000. @default the definition's */
  maxAttempts?: number | undefined;
  /** @default the definition's */
  queue?: string | undefined;
  /**
   * While a live job of this kind with this key stands in the queue, another is refused: `enqueue` answers `duplicate: true`
   * and the id of the one that stands. At most 2,000 bytes. The key is free again when the job has finished.
   */
  uniqueKey?: string | undefined;
  /** Whatever should travel with the job beside its payload: a trace id, a tenant. A JSON object. @default {} */
  metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** A job that is to be inserted. All of it is checked. */
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
}

/**
 * Everything that an enqueue says, checked, before anything is sent: a refused job leaves the caller's transaction usable.
 *
 * @throws InvalidPayloadError | RangeError | TypeError
 */
export async function newJob<TJob extends JobDefinition>(
  job: TJob,
  payload: PayloadInput<TJob>,
  options: EnqueueOptions = {},
): Promise<NewJob> {
  const what = (option: string) => `enqueue('${job.kind}'): ${option}`;
  const { delayMs, runAt, uniqueKey, metadata } = options;
  if (delayMs !== undefined && runAt !== undefined) {
    throw new TypeError(`${what('delayMs and runAt')} exclude each other`);
  }
  return {
    queue: options.queue === undefined ? job.queue : checkText(what('queue'), options.queue, MAX_NAME_BYTES),
    kind: job.kind,
    payload: await payloadToStore(job, payload),
    priority: checkInteger(what('priority'), options.priority ?? job.priority, 0, MAX_PRIORITY),
    maxAttempts: checkInteger(what('maxAttempts'), options.maxAttempts ?? job.maxAttempts, 1, MAX_ATTEMPTS),
    delayMs: checkDurationMs(what('delayMs'), delayMs ?? 0),
    runAtMs: runAt === undefined ? null : checkDate(what('runAt'), runAt).getTime(),
    uniqueKey: uniqueKey === undefined ? null : checkText(what('uniqueKey'), uniqueKey, MAX_UNIQUE_KEY_BYTES),
    metadata: metadata === undefined ? '{}' : metadataToStore(job.kind, metadata),
  };
}

/** @throws TypeError unless it is a plain object; InvalidPayloadError when jsonb cannot keep it */
export function metadataToStore(kind: string, metadata: Readonly<Record<string, unknown>>): string {
  let json: string;
  try {
    json = toStoredJson(metadata);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const path = error.issue.path === '' ? 'metadata' : `metadata.${error.issue.path}`;
    throw new InvalidPayloadError(kind, [{ ...error.issue, path }]);
  }
  // Told by the text: a Date, say, is an object until it is JSON.
  if (!json.startsWith('{')) throw new TypeError(`enqueue('${kind}'): metadata must be an object`);
  return json;
}
