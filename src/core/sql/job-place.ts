import { type SQL, sql } from 'drizzle-orm';

/** Where a reader of live jobs stands in the order of `run_at`: behind the job that has this time and id. */
export interface JobPlace {
  readonly runUs: RunUs;
  readonly id: number;
}

/**
 * Microseconds since 1970, since two jobs of one millisecond have their order; or `Infinity`, for which there
 * is no bigint. A float has not every microsecond from the year 2255 on: pages would repeat or skip jobs.
 */
export type RunUs = bigint | number;

/** The `run_at` of a row, for {@link runUsOf}. */
export function runUs(alias: string): SQL {
  return sql.raw(`trunc(extract(epoch from ${alias}.run_at) * 1000000)::text`);
}

/** Reads a column of {@link runUs}. */
export function runUsOf(value: unknown): RunUs {
  const text = String(value);
  return text.endsWith('Infinity') ? Number(text) : BigInt(text);
}

/** That a job `j` comes after a place. The first condition bounds the scan of an index. */
export function isBehind(place: JobPlace): SQL {
  const time = timeOf(place);
  return sql`j.run_at >= ${time} and (j.run_at, j.id) > (${time}, ${place.id}::int8)`;
}

/** That a job `j` stands at a place or before it. */
export function isUpTo(place: JobPlace): SQL {
  const time = timeOf(place);
  return sql`j.run_at <= ${time} and (j.run_at, j.id) <= (${time}, ${place.id}::int8)`;
}

const HOUR_US = 3_600_000_000n;

/** PostgreSQL makes times of floats, which have each full hour, and each microsecond of an hour. */
function timeOf({ runUs }: JobPlace): SQL {
  const [seconds, us] =
    typeof runUs === 'number' ? [runUs, 0] : [(runUs / HOUR_US) * 3_600n, runUs % HOUR_US];
  return sql`(to_timestamp(${String(seconds)}::text::float8)
                + ${String(us)}::text::float8 * interval '1 microsecond')`;
}

/** Before every job. */
export const FIRST_PLACE: JobPlace = { runUs: Number.NEGATIVE_INFINITY, id: 0 };

export function isBefore(a: JobPlace, b: JobPlace): boolean {
  return a.runUs === b.runUs ? a.id < b.id : a.runUs < b.runUs;
}
