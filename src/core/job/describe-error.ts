import type { AttemptError } from '../schema/attempt-error.ts';
import { HALF_SURROGATE } from './stored-json.ts';

const MAX_NAME = 200;
const MAX_MESSAGE = 2_000;
const MAX_STACK = 8_000;
const MAX_CAUSES = 3;
const HALF_SURROGATES = new RegExp(HALF_SURROGATE, 'g');

/** A stored error before the database adds the time. */
export type ErrorRecord = Omit<AttemptError, 'at'>;

/**
 * Turns whatever a handler threw into something that can be stored: bounded in size, without characters that
 * jsonb refuses, and with the messages of its causes. Never throws.
 *
 * A query error of Drizzle is replaced by the driver's own error, since its message and stack repeat the
 * query's parameters, which may be secret.
 */
export function describeError(thrown: unknown, attempt: number): ErrorRecord {
  return { attempt, ...describeThrown(thrown) };
}

/** What may be printed of an error that belongs to no attempt. Its other properties may hold secrets. */
export function describeThrown(thrown: unknown): Omit<ErrorRecord, 'attempt'> {
  try {
    return recordOf(withoutQuery(thrown));
  } catch {
    // A getter, a `toString` or a proxy threw.
    return { name: 'NonError', message: 'thrown: a value that cannot be read' };
  }
}

function recordOf(error: unknown): Omit<ErrorRecord, 'attempt'> {
  if (!(error instanceof Error)) {
    return { name: 'NonError', message: storable(`thrown: ${preview(error)}`, MAX_MESSAGE) };
  }
  const record = {
    name: storable(String(error.name || 'Error'), MAX_NAME),
    message: storable(messageWithCauses(error), MAX_MESSAGE),
  };
  return typeof error.stack === 'string' ? { ...record, stack: storable(error.stack, MAX_STACK) } : record;
}

function messageWithCauses(error: Error): string {
  const messages = [messageIn(error)];
  let cause = withoutQuery(error.cause);
  while (cause !== undefined && cause !== null && messages.length <= MAX_CAUSES) {
    messages.push(preview(cause));
    cause = cause instanceof Error ? withoutQuery(cause.cause) : undefined;
  }
  return messages.join(' [cause] ');
}

/** An error's own message, or those it holds: Node's error for a host with several addresses has none. */
function messageIn(error: Error): string {
  const message = String(error.message);
  if (message !== '' || !(error instanceof AggregateError)) return message;
  return error.errors.slice(0, MAX_CAUSES).map(preview).join(', ');
}

/** The error behind a query error of drizzle-orm; any other value unchanged. */
export function withoutQuery(thrown: unknown): unknown {
  let error = thrown;
  for (let depth = 0; depth <= MAX_CAUSES && repeatsQuery(error); depth++) error = error.cause;
  return repeatsQuery(error) ? 'a failed query, without the error that it failed with' : error;
}

/** Recognized by its text, which must not be stored: other errors have a `query` and `params`, too. */
function repeatsQuery(error: unknown): error is Error {
  return (
    error instanceof Error &&
    'query' in error &&
    'params' in error &&
    String(error.message).startsWith('Failed query:')
  );
}

function preview(value: unknown): string {
  const shown = withoutQuery(value);
  if (shown instanceof Error) return `${String(shown.name)}: ${messageIn(shown)}`;
  if (typeof shown !== 'object') return String(shown);
  try {
    return (
      JSON.stringify(shown, (_key, item) => (item instanceof Error ? preview(item) : item)) ?? String(shown)
    );
  } catch {
    return Object.prototype.toString.call(shown);
  }
}

/** Truncates, and replaces what jsonb refuses: an error must never keep an attempt from being settled. */
export function storable(text: string, maxLength = MAX_MESSAGE): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
  return cut.replaceAll('\0', '�').replaceAll(HALF_SURROGATES, '�');
}
