import { type SQL, sql } from 'drizzle-orm';
import type { ErrorRecord } from '../../job/describe-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { endAsCancelled } from '../../sql/end-as-cancelled.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { type JobsThatFit, lockThatFit } from '../../sql/jobs-that-fit.ts';

export interface JobsCancel extends JobsThatFit {
  readonly reason: Omit<ErrorRecord, 'attempt'>;
  /** Also those that a worker holds, which is told on `channel`. */
  readonly force?: { readonly channel: string | undefined } | undefined;
}

/**
 * Moves unheld jobs, or with `force` any jobs, to the results as `cancelled`. Returns their ids.
 *
 * **Under concurrency.** As with `cancelJob`: a locked row is left alone. A job that no longer matches the
 * filter stays as it is, for example because it was claimed meanwhile.
 */
export async function cancelJobs(db: Executor, tables: QueueTables, cancel: JobsCancel): Promise<number[]> {
  const rows = await queryRows(db, tables, cancelJobsQuery(tables, cancel));
  // A name that drivers leave as it is: `cancelMany` also serves clients that rename columns.
  return rows.map(({ id }) => Number(id));
}

/** @endsHold `queue.cancelMany` with `force` */
export function cancelJobsQuery(tables: QueueTables, { reason, force, ...jobs }: JobsCancel): SQL {
  const nobodys = force === undefined ? [sql`j.worker_id is null`] : [];
  const free = sql`
    with free as materialized (${lockThatFit(tables, jobs, nobodys)}
    )`;
  return endAsCancelled(tables, { queue: jobs.queue, free, reason, channel: force?.channel });
}
