import type { AttemptError } from '../schema/attempt-error.ts';
import { HALF_SURROGATE } from './stored-json.ts';

const MAX_NAME = 200;
const MAX_MESSAGE = 2_000;
const MAX_STACK = 8_000;
const MAX_CAUSES = 3;
const HALF_SURROGATES = new RegExp(HALF_SURROGATE, 'g');

/** An error as the database keeps it, before the database adds the time. */
export type ErrorRecord = Omit<AttemptError, 'at'>;

/**
 * The one place where whatever a handler threw becomes something that can be stored: any value, of any size, with any
 * characters, in a bounded, storable form, with the causes' messages. Never throws.
 *
 * Drizzle's query errors are replaced by the driver's own error: their message and stack repeat the query's parameters,
 * which may hold what nobody wants in a log.
 */
export function describeError(thrown: unknown, attempt: number): ErrorRecord {
  return { attempt, ...describeThrown(thrown) };
}

/** The same of an error that belongs to no attempt: what may be printed of it. Its other properties may hold anything. */
export function describeThrown(thrown: unknown): Omit<ErrorRecord, 'attempt'> {
  try {
    return recordOf(withoutQuery(thrown));
  } catch {
    // A getter, a toString or a proxy threw in its turn.
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

/** An error's own message. Node's error for a host with several addresses has none, but holds one error for each. */
function messageIn(error: Error): string {
  const message = String(error.message);
  if (message !== '' || !(error instanceof AggregateError)) return message;
  return error.errors.slice(0, MAX_CAUSES).map(preview).join(', ');
}

/** What is behind drizzle-orm's query errors; anything else as it is. */
export function withoutQuery(thrown: unknown): unknown {
  let error = thrown;
  for (let depth = 0; depth <= MAX_CAUSES && repeatsQuery(error); depth++) error = error.cause;
  return repeatsQuery(error) ? 'a failed query, without the error that it failed with' : error;
}

/** Told by its text, which is what must not be stored: others too have a `query` and `params` (PGlite's, an app's own). */
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

/** Cuts, and replaces what jsonb refuses: a stored error must never be the reason why an attempt cannot be settled. */
export function storable(text: string, maxLength = MAX_MESSAGE): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
  return cut.replaceAll('\0', '�').replaceAll(HALF_SURROGATES, '�');
}
