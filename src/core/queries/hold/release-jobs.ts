import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type HeldJob, idsAndFences, stillHeld } from '../../sql/fence.ts';
import { endHolds } from '../../sql/hold-end.ts';
import { findUnknownJobs, type KnownHoldings } from './find-unknown-jobs.ts';

/**
 * Gives back the jobs of one queue, in a range of ids, that a worker holds without knowing it, after the
 * answer to a claim was lost. Returns how many. The attempts are given back too, since a job that its worker
 * does not know of was never begun; unless the server may have forgotten that it has ended.
 *
 * **Under concurrency.** It names what it gives back by id and fence, so it may arrive at any time, and
 * twice: a job that a peer has taken over, or that the worker has claimed again since, does not match. A
 * single statement that gave back whatever the worker does not know of would, if the network held it up, end
 * jobs that were claimed after it was sent.
 */
export async function releaseJobs(db: Runner, tables: QueueTables, holdings: KnownHoldings): Promise<number> {
  const unknown = await findUnknownJobs(db, tables, holdings);
  if (unknown.length === 0) return 0;
  const rows = await queryRows(db, tables, releaseJobsQuery(tables, holdings, unknown));
  return rows.length;
}

/** @endsHold a claim whose answer was lost */
export function releaseJobsQuery(
  tables: QueueTables,
  holder: Omit<KnownHoldings, 'except' | 'ids'>,
  jobs: readonly HeldJob[],
): SQL {
  return endHolds(tables, {
    ctes: sql`
    with i as materialized (select id, fence from rows from (${idsAndFences(jobs)}) as r(id, fence))`,
    queue: holder.queue,
    change: {
      set: holder.mayHaveBegun
        ? sql`attempt = j.attempt - (j.claimed_at is null)::int4`
        : sql`attempt = j.attempt - 1`,
    },
    where: stillHeld(holder),
    returning: sql`j.id`,
  });
}
