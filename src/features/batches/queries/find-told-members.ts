import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { idsByQueue } from '../sql/ids-by-queue.ts';

/**
 * The members of a flow that were asked to end because it was cancelled, and have not ended yet, by queues.
 *
 * **Under concurrency.** A plain read. While the batches are locked none is asked to end.
 */
export async function findToldMembers(
  db: Executor,
  tables: TablesOfBatches,
  flowId: number,
): Promise<Map<string, number[]>> {
  const query = findToldMembersQuery(tables, flowId);
  return idsByQueue(await queryRows(db, tables, query, { entry: BATCHES_ENTRY }));
}

/** @crossesQueues the members of a batch may be in any queue */
export function findToldMembersQuery({ queueJobs, queueBatches }: TablesOfBatches, flowId: number): SQL {
  return sql`
    with batches as materialized (
      select b.id, b.cancel_reason from ${queueBatches} as b
      where b.flow_id = ${flowId}::int8 and b.cancel_reason is not null
    )
    select j.queue, j.id from ${queueJobs} as j join batches as b on b.id = j.batch_id
    where j.batch_id = any(array(select id from batches)) and j.cancel_reason = b.cancel_reason`;
}
