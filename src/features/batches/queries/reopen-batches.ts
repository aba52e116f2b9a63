import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Opens those batches of a flow again that have discarded or cancelled members, or members that were put back
 * one by one; returns the ids of the former, if their results are kept, by state. Nothing of the flow is to
 * be cancelled any more, even where that was not counted yet. Those members wait for none of their children
 * until they ask again: the end of a child would make them due before the jobs that come before them in the
 * flow.
 *
 * **Under concurrency.** Sent in the transaction that has locked the batches. The members are to be put back
 * in it, which tallies them. An empty tally lets a fold end a batch of which none could be put back. So it
 * does with one whose failed members have no results any more: a member that it has cancelled must not begin,
 * but end again. Without such a member it stays ended, since its end would cancel what runs.
 */
export async function reopenBatches(
  tx: Executor,
  tables: TablesOfBatches,
  flowId: number,
): Promise<{ readonly discarded: readonly number[]; readonly cancelled: readonly number[] }> {
  const rows = await queryRows(tx, tables, reopenBatchesQuery(tables, flowId), { entry: BATCHES_ENTRY });
  const of = (state: string) => rows.filter((row) => row.state === state).map((row) => Number(row.job_id));
  return { discarded: of('discarded'), cancelled: of('cancelled') };
}

export function reopenBatchesQuery(
  { queueBatches, queueTallies, queueResults, queueWaits }: TablesOfBatches,
  flowId: number,
): SQL {
  return sql`
    with batches as materialized (
      select b.id, b.pending, b.failed from ${queueBatches} as b where b.flow_id = ${flowId}::int8
    ),
    members as materialized (
      select r.job_id, r.batch_id, r.state from ${queueResults} as r
      where r.batch_id = any(array(select id from batches)) and r.state in ('discarded', 'cancelled')
    ),
    unended as materialized (
      select batch_id as id from members
      union
      select b.id from batches as b
      where b.pending > 0 or exists (select from ${queueTallies} as t where t.batch_id = b.id)
        or b.failed > 0 and exists (
          select w.job_id from ${queueWaits} as w join members as m on m.job_id = w.job_id
          where w.batch_id = b.id and w.policy = 'cancel'
        )
    ),
    forgotten as (
      update ${queueBatches} as b set waiting = null
      where b.waiting is not null and b.id = any(array(
        select w.batch_id from ${queueWaits} as w
        where w.job_id = any(array(select job_id from members)) and w.policy in ('parent', 'detached')
      ))
    ),
    requested as (
      update ${queueTallies} as t set cancel_reason = null
      where t.batch_id = any(array(select id from batches)) and t.cancel_reason is not null
    ),
    tallied as (
      insert into ${queueTallies} (batch_id) select id from unended
    ),
    reopened as (
      update ${queueBatches} as b
      set cancel_reason = null,
        ended_at = case when b.id in (select id from unended) then null else b.ended_at end
      where b.id = any(array(select id from batches))
        and (b.cancel_reason is not null or b.id in (select id from unended))
    )
    select m.job_id, m.state from members as m order by m.job_id`;
}
