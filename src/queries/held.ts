import { type SQL, sql } from 'drizzle-orm';

/** Whose jobs a statement is about, and in which queue. */
export interface Held {
  readonly queue: string;
  /** `null`: the row's lock is the hold, in one transaction for the whole job. */
  readonly workerId: number | null;
}

/**
 * The fence, in every statement about held jobs: the rows `j` that this worker still holds, under the fence that its claim
 * gave it. Expects the ids and fences in a CTE `i`.
 *
 * `worker_id` is needed beside the fence: rescheduling takes the holder away and leaves the fence, so a late write by the same
 * attempt would match the fence alone. The array keeps the planner on the primary key even where it knows nothing yet of
 * the table's size; `in` alone could become a join that reads all of it.
 */
export function stillHeld({ queue, workerId }: Held): SQL {
  return sql`j.queue = ${queue} and j.id = any(array(select id from i))
        and j.worker_id is not distinct from ${workerId}::int8 and (j.id, j.fence) in (select id, fence from i)`;
}

/** One input row for `jsonRows`: id, fence, and fields that are JSON text already. */
export function heldRow(id: number, fence: number, fields: Readonly<Record<string, string>>): string {
  const rest = Object.entries(fields).map(([name, json]) => `,"${name}":${json}`);
  return `{"id":${id},"fence":${fence}${rest.join('')}}`;
}
