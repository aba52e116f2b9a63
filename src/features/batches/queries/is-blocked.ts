import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * Whether a job must not begin: a batch that has to end before it is open, or it is to end since one of them
 * has failed.
 *
 * **Under concurrency.** A plain read. A batch that ends after it makes the job due, which a job that was
 * claimed meanwhile sees when it is put back.
 */
export async function isBlocked(
  db: Runner,
  tables: TablesOfBatches,
  job: { readonly id: number; readonly queue: string },
): Promise<boolean> {
  return (await queryRows(db, tables, isBlockedQuery(tables, job), { entry: BATCHES_ENTRY })).length > 0;
}

export function isBlockedQuery(
  { queueJobs, queueBatches, queueWaits }: TablesOfBatches,
  { id, queue }: { readonly id: number; readonly queue: string },
): SQL {
  return sql`
    select b.id from ${queueWaits} as w join ${queueBatches} as b on b.id = w.batch_id
    where w.job_id = ${id}::int8 and w.queue = ${queue} and w.policy in ('run', 'cancel')
      and b.ended_at is null
    union all
    select j.id from ${queueJobs} as j
    where j.queue = ${queue} and j.id = ${id}::int8 and j.cancel_reason is not null
    limit 1`;
}
