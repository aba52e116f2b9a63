import { type SQL, sql } from 'drizzle-orm';

/**
 * A time as milliseconds since 1970 in a float: every driver reads it as a number, whatever the session's DateStyle.
 * `date_part` computes in floats where `extract` makes a numeric, which took a third of the server's time for a returned row.
 */
export function epochMs(column: string): SQL {
  return sql.raw(`date_part('epoch', ${column}) * 1000`);
}

/** The time in a column of `epochMs`, rounded down to the millisecond as Postgres and Drizzle do. */
export function dateOf(value: unknown): Date {
  // 7.001 s is 7000.999… ms as a float; a microsecond more and it is on the right side, and no other value is moved.
  return new Date(Math.floor(Number(value) + 0.0005));
}
