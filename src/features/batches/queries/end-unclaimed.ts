import { type SQL, sql } from 'drizzle-orm';
import { endAsCancelled } from '../../../core/sql/end-as-cancelled.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { lockPatience } from '../../../core/sql/row-locks.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

export interface EndUnclaimed {
  readonly queue: string;
  readonly ids: readonly number[];
}

/**
 * Ends jobs of one queue as cancelled that were asked to end and that no worker holds, each for the reason in
 * its row, as `queue.cancel` would. Returns how many, and the batches of which they were members.
 *
 * **Under concurrency.** It waits for no lock. A claim that came first ends the job itself. A redrive of the
 * flow that came first has taken the request back.
 */
export async function endUnclaimed(
  db: Runner,
  tables: TablesOfBatches,
  end: EndUnclaimed,
): Promise<{ readonly jobs: number; readonly batchIds: readonly number[] }> {
  const rows = await queryRows(db, tables, endUnclaimedQuery(tables, end), { entry: BATCHES_ENTRY });
  const batchIds = rows.flatMap((row) => (row.batch_id === null ? [] : Number(row.batch_id)));
  return { jobs: rows.length, batchIds };
}

/** @endsHold of jobs that were asked to end */
export function endUnclaimedQuery(tables: TablesOfBatches, { queue, ids }: EndUnclaimed): SQL {
  const free = sql`
    with free as materialized (
      select j.id from ${tables.queueJobs} as j${lockPatience(tables, 'skip')}
      where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
        and j.worker_id is null and j.cancel_reason is not null
      order by j.id for update of j skip locked
    )`;
  return endAsCancelled(tables, { queue, free, reason: 'as requested', channel: undefined });
}
