import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import type { HeldJob } from '../../sql/fence.ts';

/**
 * Whether the transaction that has claimed a job has also cancelled it.
 *
 * **Under concurrency.** A plain read. No other transaction can have ended the job with this fence, since
 * the claim's lock is held.
 */
export async function hasCancelled(
  tx: Executor,
  tables: QueueTables,
  job: HeldJob & { readonly queue: string },
): Promise<boolean> {
  return (await queryRows(tx, tables, hasCancelledQuery(tables, job))).length > 0;
}

export function hasCancelledQuery(
  { queueResults }: QueueTables,
  { id, fence, queue }: HeldJob & { readonly queue: string },
): SQL {
  return sql`
    select r.job_id from ${queueResults} as r
    where r.queue = ${queue} and r.job_id = ${id}::int8 and r.fence = ${fence}::int8
      and r.state = 'cancelled'`;
}
