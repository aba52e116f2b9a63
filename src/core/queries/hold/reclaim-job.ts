import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { endHolds } from '../../sql/hold-end.ts';

/** A job that was claimed, with the attempt and the fence that the claim gave it. */
export interface ReclaimedJob {
  readonly id: number;
  readonly queue: string;
  readonly attempt: number;
  readonly fence: number;
}

/**
 * Claims a job again after its claim was rolled back with its transaction, so that the attempt can still be
 * settled. Afterwards the job has the attempt and the fence of the first claim, and waits by no key. Returns
 * `undefined` if it did not, otherwise why its end was requested, which may have been since.
 *
 * **Under concurrency.** Matches the fence from before the claim: a claim in between keeps the job, and so
 * does a call that has replaced it while it waited.
 */
export async function reclaimJob(
  db: Executor,
  tables: QueueTables,
  job: ReclaimedJob,
): Promise<{ readonly cancelReason: string | null } | undefined> {
  const [row] = await queryRows(db, tables, reclaimJobQuery(tables, job));
  if (row === undefined) return undefined;
  return { cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason) };
}

/** @endsHold claims an unheld job again, after its claim was rolled back */
export function reclaimJobQuery(tables: QueueTables, job: ReclaimedJob): SQL {
  return endHolds(tables, {
    queue: job.queue,
    change: {
      claimedAt: sql`statement_timestamp()`,
      set: sql`attempt = ${job.attempt}::int2, fence = j.fence + 1, waiting_key = null`,
    },
    where: sql`j.queue = ${job.queue} and j.id = ${job.id} and j.fence = ${job.fence}::int8 - 1`,
    returning: sql`j.cancel_reason`,
  });
}
