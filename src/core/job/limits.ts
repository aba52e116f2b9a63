import { shown } from './shown.ts';
import { unstorableIn } from './stored-json.ts';

/**
 * The limits of a job's settings, and their checks. The database would refuse most bad values too, but with
 * an error about a column, after the caller's transaction is already aborted.
 */

/** Priorities are 0–9, smaller first: each is one index range of the claim. */
export const MAX_PRIORITY = 9;

/** `max_attempts` is a smallint. */
export const MAX_ATTEMPTS = 10_000;

/** The largest `cost`, which is a smallint. */
export const MAX_COST = 10_000;

/** One century: beyond any real delay, and far from where timestamps overflow. */
export const MAX_DELAY_MS = 100 * 365.25 * 24 * 3_600_000;

/** Timers count in 32 bits; a longer one fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Queue, kind and unique key share one index entry, of at most a third of a page (2,704 bytes). */
export const MAX_NAME_BYTES = 200;
export const MAX_UNIQUE_KEY_BYTES = 2_000;

export const DEFAULT_MAX_PAYLOAD_BYTES = 1024 * 1024;

/** The largest `maxPayloadBytes`: jsonb holds 256 MB, and a bulk enqueue nests payloads in more JSON. */
export const LARGEST_MAX_PAYLOAD_BYTES = 100 * 1024 * 1024;

const EARLIEST = Date.parse('0001-01-01T00:00:00Z');
const LATEST = Date.parse('9999-12-31T00:00:00Z');

/** @throws RangeError unless the value is a whole number from `min` to `max` */
export function checkInteger(what: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${what} must be a whole number from ${min} to ${max}, got ${shown(value)}`);
  }
  return value;
}

/** Returns whole milliseconds. @throws RangeError unless the value is from `minMs` to `maxMs` */
export function checkDurationMs(what: string, value: number, minMs = 0, maxMs = MAX_DELAY_MS): number {
  if (typeof value !== 'number' || !(value >= minMs && value <= maxMs)) {
    throw new RangeError(
      `${what} must be a number of milliseconds from ${minMs} to ${maxMs}, got ${shown(value)}`,
    );
  }
  return Math.round(value);
}

/** @throws RangeError unless the date is valid and between the years 1 and 9999 */
export function checkDate(what: string, value: Date): Date {
  const time = value instanceof Date ? value.getTime() : Number.NaN;
  if (!(time >= EARLIEST && time <= LATEST)) {
    throw new RangeError(`${what} must be a valid Date between the years 1 and 9999, got ${shown(value)}`);
  }
  return value;
}

/** @throws TypeError unless the value is true or false */
export function checkBoolean(what: string, value: boolean): boolean {
  if (typeof value === 'boolean') return value;
  throw new TypeError(`${what} must be true or false, got ${shown(value)}`);
}

/** For callers without TypeScript. @throws TypeError unless the value is an object, as options are */
export function checkObject<T extends object>(what: string, value: T): T {
  if (typeof value === 'object' && value !== null) return value;
  throw new TypeError(`${what} must be an object, got ${shown(value)}`);
}

/** @throws TypeError unless Postgres can keep the text */
export function checkStorable(what: string, text: string): string {
  const found = unstorableIn(text);
  if (found) throw new TypeError(`${what} must not contain ${found}`);
  return text;
}

/** @throws TypeError unless the value is a text of 1 to `maxBytes` bytes that Postgres can keep */
export function checkText(what: string, value: string, maxBytes: number): string {
  if (typeof value !== 'string' || value === '') {
    throw new TypeError(`${what} must be a string that is not empty, got ${shown(value)}`);
  }
  const bytes = utf8Bytes(checkStorable(what, value));
  if (bytes > maxBytes) {
    throw new TypeError(`${what} must be at most ${maxBytes} bytes of UTF-8, got ${bytes}`);
  }
  return value;
}

/** @throws TypeError unless it can be the id of a job */
export function checkId(method: string, id: unknown): number {
  if (typeof id === 'number' && Number.isSafeInteger(id) && id > 0) return id;
  throw new TypeError(`${method}: id must be a job id, a whole number above 0; got ${shown(id)}`);
}

/** The most ids that one call takes. */
export const MAX_IDS = 10_000;

/** For callers without TypeScript. @throws TypeError unless the values are ids of jobs, 10,000 at most */
export function checkIds(method: string, ids: readonly number[]): readonly number[] {
  if (!Array.isArray(ids) || ids.length > MAX_IDS) {
    const got = Array.isArray(ids) ? `${ids.length} of them` : shown(ids);
    throw new TypeError(`${method}: ids must be an array of at most ${MAX_IDS} ids, got ${got}`);
  }
  for (const id of ids) checkId(method, id);
  return ids;
}

export function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}
