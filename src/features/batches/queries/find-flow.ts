import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** How far a flow is. */
export interface FlowRecord {
  readonly id: number;
  /** How many jobs it has. */
  readonly total: number;
  /** How many of them have not ended, as far as it is counted: within milliseconds. */
  readonly pending: number;
  /** How many were discarded or cancelled. */
  readonly failed: number;
  /** Why its jobs are to end; `null`: they are not. */
  readonly cancelReason: string | null;
  readonly createdAt: Date;
  /** When its last job had ended; `null` before that. */
  readonly endedAt: Date | null;
}

/**
 * One flow; `undefined` where there is none.
 *
 * **Under concurrency.** A plain read.
 */
export async function findFlow(
  db: Runner,
  tables: TablesOfBatches,
  id: number,
): Promise<FlowRecord | undefined> {
  const [row] = await queryRows(db, tables, findFlowQuery(tables, id), { entry: BATCHES_ENTRY });
  if (row === undefined || row.batches === null) return undefined;
  return {
    id,
    total: Number(row.total),
    pending: Number(row.pending),
    failed: Number(row.failed),
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason),
    createdAt: dateOf(row.created_at),
    endedAt: row.ended_at === null ? null : dateOf(row.ended_at),
  };
}

export function findFlowQuery({ queueBatches }: TablesOfBatches, id: number): SQL {
  return sql`
    select nullif(count(*), 0) as batches, sum(b.total)::float8 as total, sum(b.pending)::float8 as pending,
      sum(b.failed)::float8 as failed, min(b.cancel_reason) as cancel_reason,
      ${epochMs('min(b.created_at)')} as created_at,
      case when bool_and(b.ended_at is not null) then ${epochMs('max(b.ended_at)')} end as ended_at
    from ${queueBatches} as b where b.flow_id = ${id}::int8`;
}
