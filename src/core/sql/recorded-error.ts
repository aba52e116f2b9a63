import { type SQL, sql } from 'drizzle-orm';
import { KEPT_ERRORS } from '../schema/attempt-error.ts';

/** The database's time as the ISO text of an error's `at`. */
const now = `to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** An error with the time of its recording; null stays null. Not for a `SET`: it calls a function of time. */
export function withTime(error: SQL): SQL {
  return sql`${error} || jsonb_build_object('at', ${sql.raw(now)})`;
}

/**
 * A history with one more error at its end, unless that is null. A full history loses its oldest error. An
 * object joins an array as one more element; `jsonb_build_array` is not immutable, and Citus refuses it here.
 */
export function withError(errors: SQL, error: SQL): SQL {
  const full = sql`jsonb_array_length(${errors}) >= ${sql.raw(String(KEPT_ERRORS))}`;
  return sql`case when ${error} is null then ${errors}
        else (case when ${full} then ${errors} - 0 else ${errors} end) || ${error} end`;
}
