import type { AttemptError } from '../schema/attempt-error.ts';

const MAX_MESSAGE = 2_000;
const MAX_STACK = 8_000;
const MAX_CAUSES = 3;

/** An error as the database keeps it, before the database adds the time. */
export type ErrorRecord = Omit<AttemptError, 'at'>;

/**
 * The one place where whatever a handler threw becomes something that can be stored: any value, of any size, with any
 * characters, in a bounded, storable form, with the causes' messages.
 *
 * Drizzle's query errors are replaced by the driver's own error: their message and stack repeat the query's parameters,
 * which may hold what nobody wants in a log.
 */
export function describeError(thrown: unknown, attempt: number): ErrorRecord {
  const error = withoutQuery(thrown);
  if (!(error instanceof Error)) {
    return { attempt, name: 'NonError', message: storable(`thrown: ${preview(error)}`, MAX_MESSAGE) };
  }
  const record = {
    attempt,
    name: storable(String(error.name || 'Error'), 200),
    message: storable(messageWithCauses(error), MAX_MESSAGE),
  };
  return typeof error.stack === 'string' ? { ...record, stack: storable(error.stack, MAX_STACK) } : record;
}

/** The message alone, for events and logs. */
export function messageOf(thrown: unknown): string {
  return describeError(thrown, 0).message;
}

function messageWithCauses(error: Error): string {
  const messages = [error.message];
  let cause = withoutQuery(error.cause);
  while (cause !== undefined && cause !== null && messages.length <= MAX_CAUSES) {
    messages.push(cause instanceof Error ? `${cause.name}: ${cause.message}` : preview(cause));
    cause = cause instanceof Error ? withoutQuery(cause.cause) : undefined;
  }
  return messages.join(' [cause] ');
}

/** Skips errors that carry a query and its parameters, as drizzle-orm's `DrizzleQueryError` does. */
function withoutQuery(thrown: unknown): unknown {
  let error = thrown;
  while (error instanceof Error && 'query' in error && 'params' in error && error.cause instanceof Error) {
    error = error.cause;
  }
  return error;
}

function preview(value: unknown): string {
  try {
    return typeof value === 'object' ? (JSON.stringify(value) ?? String(value)) : String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** Cuts, and replaces what jsonb refuses: a stored error must never be the reason why an attempt cannot be settled. */
export function storable(text: string, maxLength = MAX_MESSAGE): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
  return cut
    .replaceAll('\0', '�')
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '�');
}
