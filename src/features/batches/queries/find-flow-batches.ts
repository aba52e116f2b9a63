import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';
import { FLOW_BOUNDS } from './find-flow-groups.ts';

export interface CountedBatch {
  readonly id: number;
  readonly total: number;
  readonly pending: number;
  /** How many were discarded or cancelled. */
  readonly failed: number;
}

/** The batches of a flow, the first ones. **Under concurrency.** A plain read. */
export async function findFlowBatches(
  db: Runner,
  tables: TablesOfBatches,
  flowId: number,
): Promise<CountedBatch[]> {
  const query = findFlowBatchesQuery(tables, flowId);
  const rows = await queryRows(db, tables, query, { entry: BATCHES_ENTRY });
  return rows.map(({ id, total, pending, failed }) => ({
    id: Number(id),
    total: Number(total),
    pending: Number(pending),
    failed: Number(failed),
  }));
}

export function findFlowBatchesQuery({ queueBatches }: TablesOfBatches, flowId: number): SQL {
  return sql`
    select b.id, b.total, b.pending, b.failed from ${queueBatches} as b
    where b.flow_id = ${flowId}::int8
    order by b.id limit ${FLOW_BOUNDS.batches}::int4`;
}
