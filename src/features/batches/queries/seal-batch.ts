import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Says how many members the same transaction has inserted into a batch that it has made.
 *
 * **Under concurrency.** No other transaction sees the batch before the transaction commits.
 */
export async function sealBatch(
  tx: Executor,
  tables: TablesOfBatches,
  id: number,
  members: number,
): Promise<void> {
  await queryRows(tx, tables, sealBatchQuery(tables, id, members), { entry: BATCHES_ENTRY });
}

export function sealBatchQuery({ queueBatches }: TablesOfBatches, id: number, members: number): SQL {
  return sql`
    update ${queueBatches} as b set total = ${members}::int8, pending = ${members}::int8,
      ended_at = case when ${members}::int8 = 0 then statement_timestamp() end
    where b.id = ${id}::int8
    returning b.id`;
}
