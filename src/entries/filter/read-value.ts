import type { OwnColumn } from '../../internal.ts';

const ISO = /^\d{4}-\d\d-\d\d([T ][\d:.]+ ?(Z|(UTC)?[+-]\d\d:\d\d))?$/;

/**
 * A time in ISO 8601: a day in UTC, or a time of day with its zone, also as the dashboard writes it.
 * `Date.parse` takes more: of it, `2` is a day in February 2001, and a time without a zone is one by this
 * process's clock.
 */
export function isoTime(text: string): Date | undefined {
  return ISO.test(text) ? timeAt(Date.parse(text)) : undefined;
}

/** The time that is this long ago. */
export function timeAgo(ms: number): Date | undefined {
  return timeAt(Date.now() - ms);
}

const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Others Postgres does not read as JavaScript writes them. */
function timeAt(ms: number): Date | undefined {
  return ms >= FIRST_MS && ms <= LAST_MS ? new Date(ms) : undefined;
}

/** The value of an own column that a text says; `undefined` for a text that says none. */
export function readValue(values: OwnColumn['values'], text: string): unknown {
  switch (values) {
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined;
    case 'bigint':
      return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
    case 'boolean':
      return text === 'true' || text === 'false' ? text === 'true' : undefined;
    case 'date':
      return isoTime(text);
    case 'json':
      try {
        return JSON.parse(text);
      } catch {
        return undefined;
      }
    default:
      return text;
  }
}

/** What {@link readValue} takes, for a message. */
export const TAKEN: Readonly<Record<OwnColumn['values'], string>> = {
  number: 'a number',
  bigint: 'a whole number',
  boolean: 'true or false',
  date: 'a time such as 2026-11-20T10:00:00Z',
  json: 'JSON',
  text: 'a text',
  custom: 'a text',
};
