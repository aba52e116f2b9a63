import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText, type HeldJob, type Holder, isStillHeld } from '../../../core/sql/fence.ts';
import { lockPatience, type RowLocks } from '../../../core/sql/row-locks.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { findLiveMembers } from './find-live-members.ts';

/** The batches of a held job that are over, and some of whose members have no result. */
export interface ReopenReturned extends HeldJob {
  readonly batchIds: readonly number[];
}

/**
 * Opens those batches of a held job again of which members live: they were put back one by one, as the end of
 * their batch had been counted. Returns the ids of all that live. Nothing of such a batch is to be cancelled
 * any more.
 *
 * **Under concurrency.** It locks the batches in the order of their ids, as a fold does. A member that ends
 * meanwhile may have been counted before the batch was opened: an empty tally lets the next fold look, so the
 * batch ends once more, and makes due what waits for it. The return of a member commits with its tally, so a
 * fold that sees the empty one counts it as well. A stale attempt changes nothing, and what is asked of a
 * job after this has begun is not taken back.
 *
 * @param locks `wait` in a transaction of the app's, `briefly` elsewhere: see `lockPatience`
 */
export async function reopenReturned(
  db: Runner,
  tables: TablesOfBatches,
  holder: Holder,
  { batchIds, ...job }: ReopenReturned,
  locks: Exclude<RowLocks, 'skip'>,
): Promise<ReadonlySet<number>> {
  const live = await findLiveMembers(db, tables, batchIds);
  if (live.length === 0) return new Set();
  const returned = { ...job, batchIds: [...new Set(live.map(({ batchId }) => batchId))] };
  const query = reopenReturnedQuery(tables, holder, returned, locks);
  const rows = await queryRows(db, tables, query, { entry: BATCHES_ENTRY });
  const own = new Set(rows.map(({ batch_id }) => Number(batch_id)));
  return new Set(live.filter(({ batchId }) => own.has(batchId)).map(({ id }) => id));
}

/** Waits by their batch, as in `waitForBatchesQuery`. */
export function reopenReturnedQuery(
  tables: TablesOfBatches,
  holder: Holder,
  { id, fence, batchIds }: ReopenReturned,
  locks: Exclude<RowLocks, 'skip'>,
): SQL {
  const { queueJobs, queueBatches, queueWaits, queueTallies } = tables;
  return sql`
    with own as materialized (
      select w.batch_id from unnest(${arrayText(batchIds)}::text::int8[]) as i(id)
      cross join lateral (
        select w.batch_id from ${queueWaits} as w
        where w.batch_id = i.id and (w.job_id = ${id}::int8 and w.queue = ${holder.queue}) is true
          and w.policy in ('parent', 'detached')
        offset 0
      ) as w
      where exists (select from ${queueJobs} as j where ${isStillHeld(holder, { id, fence })})
    ),
    locked as materialized (
      select b.id from ${queueBatches} as b${lockPatience(tables, locks)}
      where b.id = any(array(select batch_id from own)) and b.ended_at is not null
      order by b.id for no key update of b
    ),
    requested as (
      update ${queueTallies} as t set cancel_reason = null
      where t.batch_id = any(array(select id from locked)) and t.cancel_reason is not null
    ),
    reopened as (
      update ${queueBatches} as b set ended_at = null, cancel_reason = null
      where b.id = any(array(select id from locked))
    ),
    tallied as (
      insert into ${queueTallies} (batch_id) select id from locked
    )
    select o.batch_id from own as o`;
}
