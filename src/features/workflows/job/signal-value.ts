import { utf8Bytes } from '../../../core/job/limits.ts';
import type { SchemaResult, StandardSchema } from '../../../core/job/standard-schema.ts';
import { formatPath, toStoredJson, UnstorableValueError } from '../../../core/job/stored-json.ts';
import type { SignalDefinition } from './define-signal.ts';
import { InvalidSignalError } from './step-errors.ts';

const MAX_BYTES = 64 * 1024;

/**
 * The JSON text to store for the value of a signal. Its schema is asked about the stored form, as a receiver
 * will ask it.
 * @throws InvalidSignalError
 */
export async function signalToStore(signal: SignalDefinition, value: unknown): Promise<string> {
  const json = storedJsonOf(signal, value === undefined ? null : value);
  if (json.length > MAX_BYTES / 4 && utf8Bytes(json) > MAX_BYTES) {
    const reason = `it has ${utf8Bytes(json)} bytes; 64 kB is the most. Store large data elsewhere`;
    throw new InvalidSignalError(signal.name, reason);
  }
  if (signal.schema !== undefined) {
    accepted(signal, await validated(signal.schema, value === undefined ? undefined : JSON.parse(json)));
  }
  return json;
}

/** What a handler gets for a stored value: the schema's output. @throws InvalidSignalError */
export async function signalValue(signal: SignalDefinition, stored: unknown): Promise<unknown> {
  if (signal.schema === undefined || stored === undefined) return stored;
  const result = await validated(signal.schema, stored);
  if (stored !== null || result.issues === undefined) return accepted(signal, result);
  // A value that was left out is stored as null, which its schema (`….optional()`) may refuse.
  const absent = await validated(signal.schema, undefined);
  return accepted(signal, absent.issues === undefined ? absent : result);
}

async function validated(schema: StandardSchema, value: unknown): Promise<SchemaResult<unknown>> {
  return await schema['~standard'].validate(value);
}

function accepted(signal: SignalDefinition, result: SchemaResult<unknown>): unknown {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(({ message, path = [] }) => {
    const at = formatPath(path.map((part) => (typeof part === 'object' ? part.key : part)));
    return at === '' ? message : `${at}: ${message}`;
  });
  throw new InvalidSignalError(signal.name, issues.join('; '));
}

function storedJsonOf(signal: SignalDefinition, value: unknown): string {
  try {
    return toStoredJson(value);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const { message, path } = error.issue;
    throw new InvalidSignalError(signal.name, path === '' ? message : `${path}: ${message}`);
  }
}
