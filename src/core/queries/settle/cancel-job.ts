import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../../job/describe-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { endAsCancelled } from '../../sql/end-as-cancelled.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

export interface JobCancel {
  readonly id: number;
  readonly queue: string;
  readonly reason: ErrorRecord;
  /** Also when a worker holds it, which is told on `channel`; `undefined` where nobody is to be notified. */
  readonly force?: { readonly channel: string | undefined } | undefined;
}

/**
 * Moves a job that nobody holds, or by `force` any job, to the results as `cancelled`; returns whether it
 * did. A job that waits ends with the time of its cancel as its `run_at`.
 *
 * **Under concurrency.** Never waits: a locked row, such as one that a claim has just locked, is left alone.
 * A job that is cancelled here no longer matches a claim or, by force, its holder's settlement.
 */
export async function cancelJob(db: Runner, tables: QueueTables, cancel: JobCancel): Promise<boolean> {
  const rows = await queryRows(db, tables, cancelJobQuery(tables, cancel));
  return rows.length > 0;
}

export function cancelJobQuery(tables: QueueTables, { id, queue, reason, force }: JobCancel): SQL {
  const free = sql`
    with free as (
      select j.id from ${tables.queueJobs} as j
      where j.queue = ${queue} and j.id = ${id}${force === undefined ? sql` and j.worker_id is null` : sql``}
      for no key update skip locked
    )`;
  return endAsCancelled(tables, { queue, free, reason, channel: force?.channel });
}
