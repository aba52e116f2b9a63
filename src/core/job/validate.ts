import { InvalidOutputError, InvalidPayloadError, type ValidationIssue } from '../../errors.ts';
import type { JobDefinition, OutputInput, Payload, PayloadInput } from './definition.ts';
import { DEFAULT_MAX_PAYLOAD_BYTES } from './limits.ts';
import {
  isUnvalidated,
  type SchemaIssue,
  type SchemaResult,
  type StandardSchema,
} from './standard-schema.ts';
import { formatPath, toStoredJson, UnstorableValueError } from './stored-json.ts';
import { checkStoredSize } from './stored-size.ts';

type Refusal = typeof InvalidPayloadError | typeof InvalidOutputError;

/**
 * The JSON text to store for a payload. The schema is asked about the *stored* form (what `JSON.parse` makes
 * of the text), because that is what a worker will validate: a payload that passes here passes there. So a
 * `Date` under `z.date()` is refused now, with its path, and not on the first attempt in production;
 * `z.coerce.date()` takes it. A promise only where the schema returns one.
 *
 * @param maxBytes how long the JSON text may be
 * @throws InvalidPayloadError at once, or by the promise
 */
export function payloadToStore<TJob extends JobDefinition>(
  job: TJob,
  payload: PayloadInput<TJob>,
  maxBytes: number = DEFAULT_MAX_PAYLOAD_BYTES,
): string | Promise<string> {
  return toStore(job, job.payload, payload, InvalidPayloadError, maxBytes);
}

/**
 * The JSON text to store for a handler's output, checked in the same way, but of any size: the work is done,
 * and to do it again would not make its output smaller. A promise only where the schema returns one.
 *
 * @throws InvalidOutputError at once, or by the promise
 */
export function outputToStore<TJob extends JobDefinition>(
  job: TJob,
  output: OutputInput<TJob>,
): string | Promise<string> {
  return toStore(job, job.output, output, InvalidOutputError, Number.POSITIVE_INFINITY);
}

/**
 * What a handler gets for a stored payload: the schema's output. A promise only where the schema returns one.
 *
 * @throws InvalidPayloadError at once, or by the promise, when the stored payload no longer satisfies the
 * definition, as after a deploy that changed it
 */
export function payloadFromStore<TJob extends JobDefinition>(
  job: TJob,
  stored: unknown,
): Payload<TJob> | Promise<Payload<TJob>> {
  const value = job.payload === undefined ? undefined : parseStored(job, job.payload, stored);
  // The schema's output by the contract of Standard Schema; `undefined` without a schema.
  return value as Payload<TJob> | Promise<Payload<TJob>>;
}

function parseStored(job: JobDefinition, schema: StandardSchema, stored: unknown): unknown {
  const result = schema['~standard'].validate(stored);
  return 'then' in result
    ? result.then((result) => acceptStored(job, schema, stored, result))
    : acceptStored(job, schema, stored, result);
}

/** A payload that was left out is stored as null, which its schema (`….optional()`) may refuse. */
function acceptStored(
  job: JobDefinition,
  schema: StandardSchema,
  stored: unknown,
  result: SchemaResult<unknown>,
): unknown {
  if (stored !== null || result.issues === undefined) return accepted(job, result, InvalidPayloadError);
  const absent = schema['~standard'].validate(undefined);
  const answer = (absent: SchemaResult<unknown>) =>
    accepted(job, absent.issues === undefined ? absent : result, InvalidPayloadError);
  return 'then' in absent ? absent.then(answer) : answer(absent);
}

function toStore(
  job: JobDefinition,
  schema: StandardSchema | undefined,
  value: unknown,
  Refused: Refusal,
  maxBytes: number,
): string | Promise<string> {
  // `undefined` is not JSON; an absent payload or output is null in the database.
  const json = storedJsonOf(job, value === undefined ? null : value, Refused);
  // Before the schema is asked, which may take its time over something large.
  checkStoredSize(job.kind, '', json, maxBytes);
  if (schema === undefined || isUnvalidated(schema)) return json;
  const result = schema['~standard'].validate(value === undefined ? undefined : JSON.parse(json));
  if (!('then' in result)) {
    accepted(job, result, Refused);
    return json;
  }
  return result.then((result) => {
    accepted(job, result, Refused);
    return json;
  });
}

function storedJsonOf(job: JobDefinition, value: unknown, Refused: Refusal): string {
  try {
    return toStoredJson(value);
  } catch (error) {
    if (error instanceof UnstorableValueError) throw new Refused(job.kind, [error.issue]);
    throw error;
  }
}

/** The value of a result; @throws what `Refused` says where it has issues */
function accepted(job: JobDefinition, result: SchemaResult<unknown>, Refused: Refusal): unknown {
  if (result.issues !== undefined) throw new Refused(job.kind, result.issues.map(toValidationIssue));
  return result.value;
}

function toValidationIssue({ message, path = [] }: SchemaIssue): ValidationIssue {
  return { message, path: formatPath(path.map((part) => (typeof part === 'object' ? part.key : part))) };
}
