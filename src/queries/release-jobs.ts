import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { endHolds } from '../sql/hold-end.ts';

/**
 * Gives back every job of one queue that a worker holds, except those it names; the attempt is given back too, since a job
 * that its worker does not know of was never begun. Answers how many. For two moments: when the answer of a claim was lost with
 * its connection (the claim may have happened, and the worker would hold those jobs without knowing), and at the very end.
 *
 * Reads the whole queue, because no index knows a job's holder; neither moment comes often.
 *
 * **Under concurrency.** Only the worker itself calls it, between two claims of that queue. A job that a peer has taken over has
 * another holder and does not match.
 */
export async function releaseJobs(
  db: Executor,
  tables: QueueTables,
  release: { readonly queue: string; readonly workerId: number; readonly exceptIds: readonly number[] },
): Promise<number> {
  const rows = await queryRows(db, tables, releaseJobsQuery(tables, release));
  return rows.length;
}

export function releaseJobsQuery(
  tables: QueueTables,
  release: { readonly queue: string; readonly workerId: number; readonly exceptIds: readonly number[] },
): SQL {
  return endHolds(tables, {
    change: { set: sql`attempt = j.attempt - 1` },
    where: sql`j.queue = ${release.queue} and j.worker_id = ${release.workerId}
      and j.id <> all(array(select jsonb_array_elements_text(${JSON.stringify(release.exceptIds)}::text::jsonb)::int8))`,
    returning: sql`j.id`,
  });
}
