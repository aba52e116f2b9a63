import { InvalidOutputError, InvalidPayloadError, type ValidationIssue } from '../errors.ts';
import type { JobDefinition, OutputInput, Payload, PayloadInput } from './definition.ts';
import type { SchemaIssue, StandardSchema } from './standard-schema.ts';
import { formatPath, toStoredJson, UnstorableValueError } from './stored-json.ts';

type Refusal = typeof InvalidPayloadError | typeof InvalidOutputError;

/**
 * The JSON text to store for a payload. The schema is asked about the *stored* form (what `JSON.parse` makes of the text),
 * because that is what a worker will validate: a payload that passes here passes there. So a `Date` under `z.date()` is refused
 * now, with its path, and not on the first attempt in production; `z.coerce.date()` takes it.
 *
 * @throws InvalidPayloadError
 */
export async function payloadToStore<TJob extends JobDefinition>(
  job: TJob,
  payload: PayloadInput<TJob>,
): Promise<string> {
  return await toStore(job, job.payload, payload, InvalidPayloadError);
}

/**
 * The JSON text to store for a handler's output, checked in the same way.
 *
 * @throws InvalidOutputError
 */
export async function outputToStore<TJob extends JobDefinition>(
  job: TJob,
  output: OutputInput<TJob>,
): Promise<string> {
  return await toStore(job, job.output, output, InvalidOutputError);
}

/**
 * What a handler gets for a stored payload: the schema's output.
 *
 * @throws InvalidPayloadError when the stored payload no longer satisfies the definition, as after a deploy that changed it
 */
export async function payloadFromStore<TJob extends JobDefinition>(
  job: TJob,
  stored: unknown,
): Promise<Payload<TJob>> {
  const value = job.payload === undefined ? undefined : await parseStored(job, job.payload, stored);
  // The schema's output by the contract of Standard Schema; a definition without one has the payload `undefined`.
  return value as Payload<TJob>;
}

/** A payload that was left out is stored as null, which its schema (`….optional()`) may refuse. */
async function parseStored(job: JobDefinition, schema: StandardSchema, stored: unknown): Promise<unknown> {
  try {
    return await parse(job, schema, stored, InvalidPayloadError);
  } catch (error) {
    if (stored !== null || !(error instanceof InvalidPayloadError)) throw error;
    const absent = await schema['~standard'].validate(undefined);
    if (absent.issues !== undefined) throw error;
    return absent.value;
  }
}

async function toStore(
  job: JobDefinition,
  schema: StandardSchema | undefined,
  value: unknown,
  Refused: Refusal,
): Promise<string> {
  // `undefined` is no JSON; an absent payload or output is null in the database.
  const json = storedJsonOf(job, value === undefined ? null : value, Refused);
  if (schema !== undefined) {
    await parse(job, schema, value === undefined ? undefined : JSON.parse(json), Refused);
  }
  return json;
}

function storedJsonOf(job: JobDefinition, value: unknown, Refused: Refusal): string {
  try {
    return toStoredJson(value);
  } catch (error) {
    if (error instanceof UnstorableValueError) throw new Refused(job.kind, [error.issue]);
    throw error;
  }
}

async function parse(
  job: JobDefinition,
  schema: StandardSchema,
  value: unknown,
  Refused: Refusal,
): Promise<unknown> {
  const result = await schema['~standard'].validate(value);
  if (result.issues !== undefined) throw new Refused(job.kind, result.issues.map(toValidationIssue));
  return result.value;
}

function toValidationIssue({ message, path = [] }: SchemaIssue): ValidationIssue {
  return { message, path: formatPath(path.map((part) => (typeof part === 'object' ? part.key : part))) };
}
