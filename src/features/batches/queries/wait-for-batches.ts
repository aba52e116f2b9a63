import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText, type HeldJob, type Holder, isStillHeld } from '../../../core/sql/fence.ts';
import { lockPatience, type RowLocks } from '../../../core/sql/row-locks.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

export interface WaitForBatches extends HeldJob {
  readonly batchIds: readonly number[];
  /** Whether to wait only as long as none of their members fails. */
  readonly failFast: boolean;
  /** Whether the attempt already waits for one of them so: its first failure wakes the job all the same. */
  readonly isBesideFailFast?: boolean | undefined;
}

/**
 * Says that a held job waits for batches, unless they have ended, or one has failed that should not: whether
 * there is something to wait for. `undefined`: this worker no longer holds the job. `foreign`: one of them is
 * open, and another job has enqueued its members. Its end would not make this job due, so nothing is written.
 *
 * **Under concurrency.** It locks the batches in the order of their ids, then the job, as a fold does. A fold
 * that came first has counted, and it is seen here; one that comes later finds for how many batches the job
 * waits, and makes it due. A handler may wait for several things side by side: the one that needs the fewest
 * batches decides when it runs again, and one that has ended leaves the others as they are. What is left of
 * an earlier wait makes it run early, and wait again. A stale attempt changes nothing of how the job waits.
 *
 * @param locks `wait` in a transaction of the app's, `briefly` elsewhere: see `lockPatience`
 */
export async function waitForBatches(
  db: Runner,
  tables: TablesOfBatches,
  holder: Holder,
  wait: WaitForBatches,
  locks: Exclude<RowLocks, 'skip'>,
): Promise<boolean | 'foreign' | undefined> {
  const query = waitForBatchesQuery(tables, holder, wait, locks);
  const [row] = await queryRows(db, tables, query, { entry: BATCHES_ENTRY });
  if (row?.foreign_one === true) return 'foreign';
  if (row?.held !== true) return undefined;
  return Number(row.open) > 0;
}

/**
 * Waits are read by their batch, of which few jobs wait: a job may have thousands of batches. `is true` keeps
 * the planner off the index by jobs, which it would walk once for each batch where it expects few rows.
 */
export function waitForBatchesQuery(
  tables: TablesOfBatches,
  holder: Holder,
  { id, fence, batchIds, failFast, isBesideFailFast = false }: WaitForBatches,
  locks: Exclude<RowLocks, 'skip'>,
): SQL {
  const { queueJobs, queueBatches, queueWaits } = tables;
  const waiting = failFast || isBesideFailFast ? 'failure' : 'end';
  const over = failFast ? sql` and not bool_or(failed > 0)` : sql``;
  return sql`
    with locked as materialized (
      select b.id, b.ended_at is null as open, b.failed, b.ended_at is null and (
          select w.policy from ${queueWaits} as w
          where w.batch_id = b.id and (w.job_id = ${id}::int8 and w.queue = ${holder.queue}) is true
            and w.policy in ('parent', 'detached')
        ) is null as foreign_one
      from ${queueBatches} as b${lockPatience(tables, locks)}
      where b.id = any(${arrayText(batchIds)}::text::int8[])
      order by b.id for no key update of b
    ),
    waits as materialized (
      select case when count(*) filter (where open) > 0${over}
        then count(*) filter (where open) else 0 end as open, bool_or(foreign_one) as foreign_one
      from locked
    ),
    holder as (
      update ${queueJobs} as j
      set blockers = case when waits.open = 0 then j.blockers
        else greatest(case when j.blockers < 0 then j.blockers end, -waits.open) end::int4
      from waits
      where ${isStillHeld(holder, { id, fence })} and waits.foreign_one is not true
      returning j.id
    ),
    marked as (
      update ${queueBatches} as b set waiting = ${waiting}::text
      where b.id = any(array(
          select l.id from locked as l cross join waits where waits.open > 0 and exists (select from holder)
        ))
        and b.waiting is distinct from ${waiting}::text
    )
    select waits.open, waits.foreign_one, exists (select from holder) as held from waits`;
}
