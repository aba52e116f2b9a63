import { type SQL, sql } from 'drizzle-orm';

/** Thirty thousand years: a Date can still hold a time that is this long ago. */
export const LONGEST_MS = 1e15;

/**
 * A time as milliseconds since 1970 in a float, which every driver reads as a number, whatever the DateStyle.
 * `date_part` computes in floats; `extract` makes a numeric, which took a third of the server's time per
 * returned row.
 */
export function epochMs(column: string): SQL {
  return sql.raw(`date_part('epoch', ${column}) * 1000`);
}

/**
 * The milliseconds from one time to another, both text of SQL, for {@link msOf}. Before PostgreSQL 17, to
 * subtract the times themselves is an error where one of them is infinite.
 */
export function msBetween(from: string, to: string): SQL {
  return sql.raw(`(date_part('epoch', ${to}) - date_part('epoch', ${from})) * 1000`);
}

/** Reads a column of `msBetween`. From an infinite time it is the longest. */
export function msOf(value: unknown): number {
  return Math.min(Number(value), LONGEST_MS);
}

/** The first and last time of JavaScript, either side of 1970. */
const FARTHEST_MS = 8.64e15;

/**
 * Reads a column of `epochMs`, rounded down to the millisecond as Postgres and Drizzle do. An infinite time
 * is the farthest: an invalid `Date` throws where it is shown, and is no number where it is counted.
 */
export function dateOf(value: unknown): Date {
  // As a float, 7.001 s is 7000.999… ms. Half a microsecond more corrects that, and moves no other value.
  const ms = Math.floor(Number(value) + 0.0005);
  return new Date(Math.max(-FARTHEST_MS, Math.min(ms, FARTHEST_MS)));
}
