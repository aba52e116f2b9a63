import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

export interface SpareMembers {
  readonly queue: string;
  readonly ids: readonly number[];
}

/**
 * Takes back that members of one queue are to end: those that no worker holds are due as they are. Returns
 * the ids of those that have waited for others until they were asked to end. Of one that is held, the worker
 * may know already; it then ends all the same. If that worker dies before, it waits again for what has to end
 * before it.
 *
 * **Under concurrency.** Sent in the transaction that has locked the batches. It locks jobs after them, in
 * the order of their ids, and waits for a claim or a settlement that is under way.
 */
export async function spareMembers(
  tx: Executor,
  tables: TablesOfBatches,
  spare: SpareMembers,
): Promise<number[]> {
  const rows = await queryRows(tx, tables, spareMembersQuery(tables, spare), { entry: BATCHES_ENTRY });
  return rows.flatMap(({ id, waited }) => (waited === true ? Number(id) : []));
}

export function spareMembersQuery({ queueJobs }: TablesOfBatches, { queue, ids }: SpareMembers): SQL {
  return sql`
    with told as materialized (
      select j.id, j.worker_id is null and j.blockers > 0 as waited from ${queueJobs} as j
      where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
      order by j.id for no key update
    )
    update ${queueJobs} as j
    set cancel_reason = null, blockers = case when j.worker_id is not null then j.blockers end
    where j.queue = ${queue} and j.id = any(array(select id from told))
    returning j.id, j.id in (select id from told where waited) as waited`;
}
