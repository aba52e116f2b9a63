import { type SQL, sql } from 'drizzle-orm';
import type { Finish } from '../job/transition.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../schema/own-columns.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import { arrayText, type HeldJob, type Holder, idsAndFences, stillHeld } from '../sql/fence.ts';
import { ownNames } from '../sql/own-values.ts';
import { planAnew } from '../sql/plan-anew.ts';
import { withError, withTime } from '../sql/recorded-error.ts';

/** A held job and how it ends. */
export interface FinishedJob extends HeldJob {
  readonly transition: Finish;
}

export interface FinishOptions {
  /**
   * Whether to do nothing unless something has been written before in the same transaction: see `completeJob`.
   * @default false
   */
  readonly onlyInTransaction?: boolean;
}

/**
 * Ends held jobs of one queue: deletes them from `queue_jobs` and writes their results, in one statement. Answers the ids of
 * those it ended; the others were no longer held by this worker under this fence, and nothing of theirs was changed.
 *
 * **Under concurrency.** Fenced: a job that was claimed again, rescheduled or ended in between does not match. Where another
 * transaction is just changing the job, this waits for it and looks again. Delete and insert commit together, so no reader
 * ever sees the job in both tables or in neither.
 */
export async function finishJobs(
  db: Runner,
  tables: QueueTables,
  held: Holder,
  finishes: readonly FinishedJob[],
  options?: FinishOptions,
): Promise<Set<number>> {
  const rows = await queryRows(db, tables, finishJobsQuery(tables, held, finishes, options));
  const lost = new Set(rows.map((row) => `${row.id}/${row.fence}`));
  const finished = finishes.filter(({ id, fence }) => lost.size === 0 || !lost.has(`${id}/${fence}`));
  return new Set(finished.map(({ id }) => id));
}

/** Answers the ids and fences of those that were *not* held: hardly ever any, so hardly ever a row to read. */
export function finishJobsQuery(
  { queueJobs, queueResults }: QueueTables,
  held: Holder,
  finishes: readonly FinishedJob[],
  { onlyInTransaction = false }: FinishOptions = {},
): SQL {
  // A statement that writes gets its transaction's id as it does so, not before.
  const inTransaction = onlyInTransaction ? sql` and pg_current_xact_id_if_assigned() is not null` : sql``;
  const own = ownColumnsOf(queueJobs);
  const lost = sql`select id, fence from i where (id, fence) not in (select id, fence from finished)`;
  if (!finishes.some(({ transition }) => transition.keepResult)) {
    return sql`
    with i as materialized (
      select id, fence from ${planAnew()} cross join rows from (${idsAndFences(finishes)}) as r(id, fence)
    ),
    finished as (
      delete from ${queueJobs} as j
      where ${stillHeld(held)}${inTransaction}
      returning j.id, j.fence
    )
    ${lost}`;
  }
  return sql`
    with i as materialized (
      select id, fence, coalesce(state, 'completed') as state, coalesce(keep, true) as keep, nullif(output, 'null') as output,
        ${withTime(sql`nullif(error, 'null')`)} as error
      from ${planAnew()} cross join rows from (${idsAndFences(finishes)}, ${endings(finishes)}) as r(id, fence, state, keep, output, error)
    ),
    finished as (
      delete from ${queueJobs} as j
      where ${stillHeld(held)}${inTransaction}
      returning j.*
    ),
    recorded as (
      insert into ${queueResults} (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts, priority, fence,
        unique_key, metadata, worker_id, created_at, run_at, claimed_at, finished_at${ownNames(own)})
      select f.id, f.queue, f.kind, f.payload, i.state, i.output, ${withError(sql`f.errors`, sql`i.error`)}, f.attempt, f.max_attempts, f.priority, f.fence,
        f.unique_key, f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at, statement_timestamp()${ownNames(own, 'f.')}
      from finished as f join i on i.id = f.id and i.fence = f.fence
      where i.keep
    )
    ${lost}`;
}

/** State, keep, output and error, as functions of a `rows from (…)`. What is the same for all is left out: `rows from` fills up with null. */
function endings(finishes: readonly FinishedJob[]): SQL {
  const transitions = finishes.map(({ transition }) => transition);
  const states = transitions.every(({ state }) => state === 'completed')
    ? []
    : transitions.map(({ state }) => state);
  const keeps = transitions.every(({ keepResult }) => keepResult)
    ? []
    : transitions.map(({ keepResult }) => keepResult);
  const outputs = transitions.every(({ output }) => output === null || output === 'null')
    ? []
    : transitions.map(({ output }) => output ?? 'null');
  const errors = transitions.every(({ error }) => error === null)
    ? []
    : transitions.map(({ error }) => JSON.stringify(error));
  return sql`unnest(${arrayText(states)}::text::text[]), unnest(${arrayText(keeps)}::text::bool[]),
        jsonb_array_elements(${`[${outputs.join(',')}]`}::text::jsonb), jsonb_array_elements(${`[${errors.join(',')}]`}::text::jsonb)`;
}
