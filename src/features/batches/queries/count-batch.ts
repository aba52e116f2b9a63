import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** Members of a batch that are gone without a tally. */
export interface MissingMembers {
  readonly batchId: number;
  readonly missing: number;
  readonly failed: number;
  /** When the batch was recounted last, as the database writes it; `null`: never. */
  readonly recountedAt: string | null;
}

/**
 * Counts the live members of an open batch, and so those that have gone without a tally: rows that were
 * deleted by hand, or ended by a worker whose queue has no workflows. As many of them were completed as there
 * are more results than counted ends. Of the others nothing is known, and they count as failed: a result may
 * not be kept, or be pruned, also that of a job that was counted. `undefined`: the batch has ended.
 *
 * **Under concurrency.** A plain read. A member leaves the table in the commit that adds its tally, so in one
 * snapshot each is live, tallied, counted or missing; and what is missing stays so until it is counted.
 */
export async function countBatch(
  db: Runner,
  tables: TablesOfBatches,
  id: number,
): Promise<MissingMembers | undefined> {
  const [row] = await queryRows(db, tables, countBatchQuery(tables, id), { entry: BATCHES_ENTRY });
  if (row === undefined) return undefined;
  const missing = Math.max(0, Number(row.missing));
  const completed = Math.min(Math.max(0, Number(row.completed)), missing);
  const recountedAt = row.recounted_at === null ? null : String(row.recounted_at);
  return { batchId: id, missing, failed: missing - completed, recountedAt };
}

/** @crossesQueues the members of a batch may be in any queue */
export function countBatchQuery(
  { queueJobs, queueResults, queueBatches, queueTallies }: TablesOfBatches,
  id: number,
): SQL {
  return sql`
    with tallied as materialized (
      select coalesce(sum(added), 0) as added, coalesce(sum(ended), 0) as ended,
        coalesce(sum(failed), 0) as failed
      from ${queueTallies} where batch_id = ${id}::int8
    )
    select b.recounted_at::text as recounted_at, (
      b.pending + t.added - t.ended
        - (select count(*) from ${queueJobs} as j where j.batch_id = ${id}::int8)
    )::float8 as missing, (
      (select count(*) from ${queueResults} as r where r.batch_id = ${id}::int8 and r.state = 'completed')
        - (b.total - b.pending + t.ended - b.failed - t.failed)
    )::float8 as completed
    from ${queueBatches} as b cross join tallied as t
    where b.id = ${id}::int8 and b.ended_at is null`;
}
