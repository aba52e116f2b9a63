import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import type { MissingMembers } from './count-batch.ts';

/**
 * Says that a batch was recounted, and adds a tally for members that were missing; returns whether it has.
 *
 * **Under concurrency.** It does so only where the batch was not recounted since that count, so of two
 * recounts one adds them. It waits for no lock: a batch that another transaction has locked is left for the
 * next round.
 */
export async function tallyMissing(
  db: Runner,
  tables: TablesOfBatches,
  members: MissingMembers,
): Promise<boolean> {
  const query = tallyMissingQuery(tables, members);
  return (await queryRows(db, tables, query, { entry: BATCHES_ENTRY })).length > 0;
}

export function tallyMissingQuery(
  { queueBatches, queueTallies }: TablesOfBatches,
  { batchId, missing, failed, recountedAt }: MissingMembers,
): SQL {
  return sql`
    with free as materialized (
      select b.id from ${queueBatches} as b
      where b.id = ${batchId}::int8 and b.ended_at is null
        and b.recounted_at is not distinct from ${recountedAt}::timestamptz
      for no key update skip locked
    ),
    recounted as (
      update ${queueBatches} as b set recounted_at = statement_timestamp()
      where b.id = any(array(select id from free))
      returning b.id
    )
    insert into ${queueTallies} (batch_id, ended, failed)
    select r.id, ${missing}::int4, ${failed}::int4 from recounted as r where ${missing}::int4 > 0
    returning batch_id`;
}
