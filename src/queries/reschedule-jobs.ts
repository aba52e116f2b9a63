import { type SQL, sql } from 'drizzle-orm';
import type { Reschedule } from '../job/transition.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import { arrayText, type HeldJob, type Holder, idsAndFences, stillHeld } from '../sql/fence.ts';
import { planAnew } from '../sql/plan-anew.ts';
import { withError, withTime } from '../sql/recorded-error.ts';

/** A held job and how it goes on. */
export interface RescheduledJob extends HeldJob {
  readonly transition: Reschedule;
}

/**
 * Puts held jobs of one queue back: held by nobody, due after a delay or where they were. Answers those it put back, by id, each
 * with why its end was asked for, if it was: then it must not run again. The others were no longer held by this worker under
 * this fence.
 *
 * **Under concurrency.** Fenced as `finishJobs` is. The new `run_at` is the database's time plus the delay, computed
 * before the update so that the update itself holds no function: it can then be pushed to wherever the row lives.
 */
export async function rescheduleJobs(
  db: Runner,
  tables: QueueTables,
  held: Holder,
  reschedules: readonly RescheduledJob[],
): Promise<Map<number, string | null>> {
  const rows = await queryRows(db, tables, rescheduleJobsQuery(tables, held, reschedules));
  return new Map(
    rows.map((row) => [Number(row.id), row.cancel_reason === null ? null : String(row.cancel_reason)]),
  );
}

export function rescheduleJobsQuery(
  { queueJobs }: QueueTables,
  held: Holder,
  reschedules: readonly RescheduledJob[],
): SQL {
  const transitions = reschedules.map(({ transition }) => transition);
  return sql`
    with i as materialized (
      select id, fence, attempt, statement_timestamp() + delay_ms * interval '1 millisecond' as run_at,
        ${withTime(sql`nullif(error, 'null')`)} as error
      from ${planAnew()} cross join rows from (${idsAndFences(reschedules)}, unnest(${arrayText(transitions.map(({ attempt }) => attempt))}::text::int2[]),
        unnest(${arrayText(transitions.map(({ delayMs }) => delayMs ?? 'null'))}::text::float8[]),
        jsonb_array_elements(${JSON.stringify(transitions.map(({ error }) => error))}::text::jsonb)) as r(id, fence, attempt, delay_ms, error)
    )
    update ${queueJobs} as j
    set worker_id = null, claimed_at = null, attempt = i.attempt, run_at = coalesce(i.run_at, j.run_at),
      errors = ${withError(sql`j.errors`, sql`i.error`)}
    from i
    where i.id = j.id and i.fence = j.fence and ${stillHeld(held)}
    returning j.id, j.cancel_reason`;
}
