import { type SQL, sql } from 'drizzle-orm';

/** Where a reader of live jobs stands in the order of `run_at`: behind the job that has this time and id. */
export interface JobPlace {
  /** Microseconds since 1970, or `Infinity`: two jobs of one millisecond have their order. */
  readonly runUs: number;
  readonly id: number;
}

/** The `run_at` of a job `j`, as a {@link JobPlace} has it. */
export const runUs: SQL = sql.raw('(extract(epoch from j.run_at) * 1000000)::float8');

/** That a job `j` stands behind a place. The first condition bounds the scan of an index. */
export function isBehind(place: JobPlace): SQL {
  const time = timeOf(place);
  return sql`j.run_at >= ${time} and (j.run_at, j.id) > (${time}, ${place.id}::int8)`;
}

/** That a job `j` stands at a place or before it. */
export function isUpTo(place: JobPlace): SQL {
  const time = timeOf(place);
  return sql`j.run_at <= ${time} and (j.run_at, j.id) <= (${time}, ${place.id}::int8)`;
}

function timeOf({ runUs }: JobPlace): SQL {
  return sql`to_timestamp(${String(runUs)}::text::float8 / 1000000)`;
}

/** Before every job. */
export const FIRST_PLACE: JobPlace = { runUs: Number.NEGATIVE_INFINITY, id: 0 };

export function isBefore(a: JobPlace, b: JobPlace): boolean {
  return a.runUs === b.runUs ? a.id < b.id : a.runUs < b.runUs;
}
