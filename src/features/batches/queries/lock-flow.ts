import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Locks the batches of a flow until the transaction ends: nothing is counted of them, and none of their
 * members is asked to end.
 *
 * **Under concurrency.** In the order of their ids, as a fold does. It waits for one that is under way.
 */
export async function lockFlow(tx: Executor, tables: TablesOfBatches, flowId: number): Promise<void> {
  await queryRows(tx, tables, lockFlowQuery(tables, flowId), { entry: BATCHES_ENTRY });
}

export function lockFlowQuery({ queueBatches }: TablesOfBatches, flowId: number): SQL {
  return sql`
    select b.id from ${queueBatches} as b where b.flow_id = ${flowId}::int8
    order by b.id for no key update`;
}
