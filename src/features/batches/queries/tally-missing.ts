import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import type { MissingMembers } from './count-batch.ts';

/**
 * Says that a batch was recounted, and adds a tally for members that were missing.
 *
 * **Under concurrency.** It does so only where the batch was not recounted since that count, so of two
 * recounts one adds them. It waits for a fold of the batch, which takes a moment.
 */
export async function tallyMissing(
  db: Runner,
  tables: TablesOfBatches,
  members: MissingMembers,
): Promise<void> {
  await queryRows(db, tables, tallyMissingQuery(tables, members), { entry: BATCHES_ENTRY });
}

export function tallyMissingQuery(
  { queueBatches, queueTallies }: TablesOfBatches,
  { batchId, missing, failed, recountedAt }: MissingMembers,
): SQL {
  return sql`
    with recounted as (
      update ${queueBatches} as b set recounted_at = statement_timestamp()
      where b.id = ${batchId}::int8 and b.ended_at is null
        and b.recounted_at is not distinct from ${recountedAt}::timestamptz
      returning b.id
    )
    insert into ${queueTallies} (batch_id, ended, failed)
    select r.id, ${missing}::int4, ${failed}::int4 from recounted as r where ${missing}::int4 > 0`;
}
