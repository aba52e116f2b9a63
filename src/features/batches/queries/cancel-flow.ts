import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Says that all members of a flow's open batches are to end; returns how many batches are open. Workers ask
 * for the end of the members once this commits.
 *
 * **Under concurrency.** It adds tallies, and so neither waits nor holds up others.
 */
export async function cancelFlow(
  db: Executor,
  tables: TablesOfBatches,
  flowId: number,
  reason: string,
): Promise<number> {
  const query = cancelFlowQuery(tables, flowId, reason);
  return (await queryRows(db, tables, query, { entry: BATCHES_ENTRY })).length;
}

export function cancelFlowQuery(
  { queueBatches, queueTallies }: TablesOfBatches,
  flowId: number,
  reason: string,
): SQL {
  return sql`
    insert into ${queueTallies} (batch_id, cancel_reason)
    select b.id, ${reason} from ${queueBatches} as b
    where b.flow_id = ${flowId}::int8 and b.ended_at is null
    returning batch_id`;
}
