import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import type { WaitPolicy } from '../schema/queue-waits.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/** A job that the end of a batch makes due. */
export interface Wait {
  readonly batchId: number;
  readonly jobId: number;
  readonly queue: string;
  readonly policy: WaitPolicy;
}

/**
 * Says which jobs wait for the batches that the same transaction has made. Rows of `forked` are for batches
 * that have ended: a fork copies them (`copySteps`).
 *
 * **Under concurrency.** A fold reads them with the batch, since both commit together. A repetition does
 * nothing.
 */
export async function addWaits(tx: Executor, tables: TablesOfBatches, waits: readonly Wait[]): Promise<void> {
  if (waits.length === 0) return;
  await queryRows(tx, tables, addWaitsQuery(tables, waits), { entry: BATCHES_ENTRY });
}

export function addWaitsQuery({ queueWaits }: TablesOfBatches, waits: readonly Wait[]): SQL {
  const names = JSON.stringify(waits.map(({ queue, policy }) => ({ queue, policy })));
  return sql`
    insert into ${queueWaits} (batch_id, job_id, queue, policy)
    select batch_id, job_id, name ->> 'queue', name ->> 'policy' from rows from (
      unnest(${arrayText(waits.map(({ batchId }) => batchId))}::text::int8[]),
      unnest(${arrayText(waits.map(({ jobId }) => jobId))}::text::int8[]),
      jsonb_array_elements(${names}::text::jsonb)
    ) as r(batch_id, job_id, name)
    on conflict do nothing`;
}
