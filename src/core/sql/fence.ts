import { type SQL, sql } from 'drizzle-orm';
import type { Valued } from './kept-statement.ts';

/** Whose jobs a statement is about, and in which queue. */
export interface Holder {
  readonly queue: string;
  /** `null`: the row's lock is the hold, in one transaction for the whole job. */
  readonly workerId: number | null;
}

/**
 * The fence, in every statement about held jobs: the rows `j` that this worker still holds, under the fence
 * that its claim gave it. Expects the ids and fences in a CTE `i`.
 *
 * `worker_id` is needed beside the fence: rescheduling takes the holder away and leaves the fence, so a late
 * write by the same attempt would match the fence alone. The array keeps the planner on the primary key even
 * where it knows nothing yet of the table's size; `in` alone could become a join that reads all of it. `is
 * true` keeps `in` from becoming a join at all: as a hashed subplan it costs 0.1 µs a job; as the nested loop
 * that the planner takes for a CTE of unknown size, 25.
 */
export function stillHeld({ queue, workerId }: Valued<Holder>): SQL {
  return sql`j.queue = ${queue} and j.id = any(array(select id from i))
        and j.worker_id is not distinct from ${workerId}::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true`;
}

/** {@link stillHeld} of one job, by its primary key. */
export function isStillHeld({ queue, workerId }: Valued<Holder>, { id, fence }: Valued<HeldJob>): SQL {
  return sql`j.queue = ${queue} and j.id = ${id}::int8
        and j.worker_id is not distinct from ${workerId}::int8 and j.fence = ${fence}::int8`;
}

export interface HeldJob {
  readonly id: number;
  readonly fence: number;
}

/**
 * Ids and fences as two functions of a `rows from (…)`. Arrays of numbers as text: every driver sends it
 * alike, and the server reads it four times as fast as JSON.
 */
export function idsAndFences(jobs: readonly HeldJob[]): SQL {
  return unnested(textsOf(jobs));
}

/** The two arrays of {@link idsAndFences}. */
export interface IdAndFenceTexts {
  readonly ids: string;
  readonly fences: string;
}

export function textsOf(jobs: readonly HeldJob[]): IdAndFenceTexts {
  return { ids: arrayText(jobs.map(({ id }) => id)), fences: arrayText(jobs.map(({ fence }) => fence)) };
}

/** {@link idsAndFences} of their texts. */
export function unnested({ ids, fences }: Valued<IdAndFenceTexts>): SQL {
  return sql`unnest(${ids}::text::int8[]), unnest(${fences}::text::int8[])`;
}

/** An array as Postgres writes it; for values without quotes, commas and braces. */
export function arrayText(values: readonly (number | boolean | string)[]): string {
  return `{${values.join(',')}}`;
}
