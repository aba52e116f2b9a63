import { type SQL, sql } from 'drizzle-orm';
import type { FinalState } from '../../../core/schema/queue-results.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import type { TablesOfBatches } from '../sql/batch-tables.ts';

export interface MemberEnd {
  readonly id: number;
  readonly kind: string;
  readonly state: FinalState;
  /** As stored; `null` unless it was completed with an output. */
  readonly output: unknown;
  /** What was thrown last, or why it was cancelled. */
  readonly message: string | undefined;
}

/**
 * How the members of batches have ended, in the order of their ids: those whose results are kept.
 *
 * **Under concurrency.** A plain read.
 */
export async function findEnds(
  db: Runner,
  tables: TablesOfBatches,
  batchIds: readonly number[],
  kind?: string,
): Promise<MemberEnd[]> {
  const rows = await queryRows(db, tables, findEndsQuery(tables, batchIds, kind));
  return rows.map((row) => ({
    id: Number(row.job_id),
    kind: String(row.kind),
    // This column is written by the library alone.
    state: row.state as FinalState,
    output: row.output,
    message: row.message === null ? undefined : String(row.message),
  }));
}

export function findEndsQuery(
  { queueResults }: TablesOfBatches,
  batchIds: readonly number[],
  kind: string | undefined,
): SQL {
  const ofKind = kind === undefined ? sql`` : sql` and r.kind = ${kind}`;
  return sql`
    select r.job_id, r.kind, r.state, r.output, r.errors -> -1 ->> 'message' as message
    from ${queueResults} as r
    where r.batch_id = any(${arrayText(batchIds)}::text::int8[])${ofKind}
    order by r.job_id`;
}
