import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { CHUNK } from '../sql/chunk.ts';
import { idsByQueue } from '../sql/ids-by-queue.ts';

/**
 * The next {@link CHUNK} live members of batches that are to end, which have not been asked to yet, with ids
 * above `after`, by their queues.
 *
 * **Under concurrency.** A plain read.
 */
export async function findMembers(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  after: number,
): Promise<Map<string, number[]>> {
  const query = findMembersQuery(tables, batchIds, after);
  return idsByQueue(await queryRows(db, tables, query, { entry: BATCHES_ENTRY }));
}

/** @crossesQueues the members of a batch may be in any queue */
export function findMembersQuery(
  { queueJobs, queueBatches }: TablesOfBatches,
  batchIds: readonly number[],
  after: number,
): SQL {
  return sql`
    select j.queue, j.id from ${queueBatches} as b join ${queueJobs} as j on j.batch_id = b.id
    where b.id = any(${arrayText(batchIds)}::text::int8[]) and b.cancel_reason is not null
      and j.cancel_reason is null and j.id > ${after}::int8
    order by j.id limit ${CHUNK}::int4`;
}
