import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Says that all members of batches are to end. Workers ask for their end once this commits.
 *
 * **Under concurrency.** As `cancelFlow`: it adds tallies, and so neither waits nor holds up others.
 */
export async function cancelBatches(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  reason: string,
): Promise<void> {
  await queryRows(db, tables, cancelBatchesQuery(tables, batchIds, reason), { entry: BATCHES_ENTRY });
}

export function cancelBatchesQuery(
  { queueBatches, queueTallies }: TablesOfBatches,
  batchIds: readonly number[],
  reason: string,
): SQL {
  return sql`
    insert into ${queueTallies} (batch_id, cancel_reason)
    select b.id, ${reason} from ${queueBatches} as b
    where b.id = any(array(select unnest(${arrayText(batchIds)}::text::int8[]))) and b.ended_at is null`;
}
