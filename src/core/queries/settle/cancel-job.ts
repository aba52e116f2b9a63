import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../../job/describe-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { endAsCancelled } from '../../sql/end-as-cancelled.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

export interface JobCancel {
  readonly id: number;
  readonly queue: string;
  readonly reason: ErrorRecord;
  /** Also cancels a held job; its worker is notified on `channel`. `undefined` sends no notification. */
  readonly force?: { readonly channel: string | undefined } | undefined;
}

/**
 * Moves an unheld job, or with `force` any job, to the results as `cancelled`; returns whether it did. A job
 * that waits ends with the time of its cancel as its `run_at`.
 *
 * **Under concurrency.** Never waits: a locked row, such as one that a claim has just locked, is left alone.
 * A job that is cancelled here no longer matches a claim or, with `force`, its holder's settlement.
 */
export async function cancelJob(db: Runner, tables: QueueTables, cancel: JobCancel): Promise<boolean> {
  const rows = await queryRows(db, tables, cancelJobQuery(tables, cancel));
  return rows.length > 0;
}

/**
 * @endsHold `queue.cancel` with `force`
 * @insteadOnCitus (of members) an error: no worker starts there whose queue has workflows
 */
export function cancelJobQuery(tables: QueueTables, { id, queue, reason, force }: JobCancel): SQL {
  const free = sql`
    with free as (
      select j.id from ${tables.queueJobs} as j
      where j.queue = ${queue} and j.id = ${id}${force === undefined ? sql` and j.worker_id is null` : sql``}
      for no key update skip locked
    )`;
  return endAsCancelled(tables, { queue, free, reason, channel: force?.channel });
}
