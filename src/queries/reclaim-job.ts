import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { endHolds } from '../sql/hold-end.ts';

/** A job that was claimed, with the attempt and the fence that the claim gave it. */
export interface ReclaimedJob {
  readonly id: number;
  readonly queue: string;
  readonly attempt: number;
  readonly fence: number;
}

/**
 * Claims one job again after the transaction that had claimed it was rolled back, and the claim with it: so
 * that the attempt can be settled all the same. Returns whether it did. Afterwards the job has the attempt
 * and the fence of the first claim.
 *
 * **Under concurrency.** Matches the fence from before the claim: whoever has claimed the job in between
 * keeps it.
 */
export async function reclaimJob(db: Executor, tables: QueueTables, job: ReclaimedJob): Promise<boolean> {
  const rows = await queryRows(db, tables, reclaimJobQuery(tables, job));
  return rows.length > 0;
}

export function reclaimJobQuery(tables: QueueTables, job: ReclaimedJob): SQL {
  return endHolds(tables, {
    change: {
      claimedAt: sql`statement_timestamp()`,
      set: sql`attempt = ${job.attempt}::int2, fence = j.fence + 1`,
    },
    where: sql`j.queue = ${job.queue} and j.id = ${job.id} and j.fence = ${job.fence}::int8 - 1`,
    returning: sql`j.id`,
  });
}
