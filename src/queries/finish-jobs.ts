import { type SQL, sql } from 'drizzle-orm';
import type { Finish } from '../job/transition.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from './executor.ts';
import { type Held, heldRow, stillHeld } from './held.ts';
import { jsonRows } from './json-rows.ts';
import { withError, withTime } from './recorded-error.ts';

/**
 * Ends held jobs of one queue: deletes them from `queue_jobs` and writes their results, in one statement. Answers the ids of
 * those it ended; the others were no longer held by this worker under this fence, and nothing of theirs was changed.
 *
 * **Under concurrency.** Fenced: a job that was claimed again, rescheduled or ended in between does not match. Where another
 * transaction is just changing the job, this waits for it and looks again. Delete and insert commit together, so no reader
 * ever sees the job in both tables or in neither.
 */
export async function finishJobs(
  db: Executor,
  tables: QueueTables,
  held: Held,
  finishes: readonly { readonly id: number; readonly fence: number; readonly transition: Finish }[],
): Promise<Set<number>> {
  const rows = await queryRows(db, tables, finishJobsQuery(tables, held, finishes));
  return new Set(rows.map((row) => Number(row.id)));
}

export function finishJobsQuery(
  { queueJobs, queueResults }: QueueTables,
  held: Held,
  finishes: readonly { readonly id: number; readonly fence: number; readonly transition: Finish }[],
): SQL {
  const rows = finishes.map(({ id, fence, transition }) =>
    heldRow(id, fence, {
      state: JSON.stringify(transition.state),
      keep: String(transition.keepResult),
      output: transition.output ?? 'null',
      error: JSON.stringify(transition.error),
    }),
  );
  return sql`
    with i as materialized (
      select id, fence, state, keep, output, ${withTime(sql`error`)} as error
      from ${jsonRows(rows, 'id int8, fence int4, state text, keep bool, output jsonb, error jsonb')} as r
    ),
    finished as (
      delete from ${queueJobs} as j
      where ${stillHeld(held)}
      returning j.*
    ),
    recorded as (
      insert into ${queueResults} (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts, priority, fence,
        unique_key, metadata, worker_id, created_at, run_at, claimed_at, finished_at)
      select f.id, f.queue, f.kind, f.payload, i.state, i.output, ${withError(sql`f.errors`, sql`i.error`)}, f.attempt, f.max_attempts, f.priority, f.fence,
        f.unique_key, f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at, statement_timestamp()
      from finished as f join i on i.id = f.id and i.fence = f.fence
      where i.keep
    )
    select id from finished`;
}
