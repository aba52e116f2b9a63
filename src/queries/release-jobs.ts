import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { type HeldJob, idsAndFences } from '../sql/fence.ts';
import { endHolds } from '../sql/hold-end.ts';

export interface Release {
  readonly queue: string;
  readonly workerId: number;
  /**
   * The jobs that the worker knows it holds. With their fences: it may know a job from a claim that it has
   * lost, and hold it again by one whose result never came.
   */
  readonly except: readonly HeldJob[];
}

/**
 * Gives back every job of one queue that a worker holds, except those it names, after the result of a claim
 * was lost with its connection. Returns how many. The attempts are given back too, since a job that its
 * worker does not know of was never begun. Reads the whole queue, because no index knows a job's holder.
 *
 * **Under concurrency.** Only the worker itself calls it, between two claims of that queue. A job that a peer
 * has taken over has another holder and does not match.
 */
export async function releaseJobs(db: Executor, tables: QueueTables, release: Release): Promise<number> {
  const rows = await queryRows(db, tables, releaseJobsQuery(tables, release));
  return rows.length;
}

export function releaseJobsQuery(tables: QueueTables, release: Release): SQL {
  return endHolds(tables, {
    queue: release.queue,
    change: { set: sql`attempt = j.attempt - 1` },
    where: sql`j.queue = ${release.queue} and j.worker_id = ${release.workerId}
      and not exists (
        select from rows from (${idsAndFences(release.except)}) as i(id, fence)
        where i.id = j.id and i.fence = j.fence)`,
    returning: sql`j.id`,
  });
}
