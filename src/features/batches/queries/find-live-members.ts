import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * The members of batches that live, with their batches.
 *
 * **Under concurrency.** A plain read.
 */
export async function findLiveMembers(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
): Promise<{ readonly id: number; readonly batchId: number }[]> {
  const rows = await queryRows(db, tables, findLiveMembersQuery(tables, batchIds), { entry: BATCHES_ENTRY });
  return rows.map(({ id, batch_id }) => ({ id: Number(id), batchId: Number(batch_id) }));
}

/** @crossesQueues the members of a batch may be in any queue */
export function findLiveMembersQuery({ queueJobs }: TablesOfBatches, batchIds: readonly number[]): SQL {
  return sql`
    select j.id, j.batch_id from ${queueJobs} as j
    where j.batch_id = any(${arrayText(batchIds)}::text::int8[])`;
}
