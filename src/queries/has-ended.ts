import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';

/** A job under the fence of one of its holders. */
export interface FencedJob {
  readonly id: number;
  readonly queue: string;
  readonly fence: number;
}

/**
 * Whether a job that its holder no longer holds has ended under that holder's fence, rather than having been put back or taken over. A
 * job that has left no result counts as ended: a completion that keeps none is the one way to that.
 *
 * **Under concurrency.** One statement, so one snapshot: a job that is just ending is found in one of the two tables.
 */
export async function hasEnded(db: Executor, tables: QueueTables, job: FencedJob): Promise<boolean> {
  const [row] = await queryRows(db, tables, hasEndedQuery(tables, job));
  return row?.ended === true;
}

export function hasEndedQuery(
  { queueJobs, queueResults }: QueueTables,
  { id, queue, fence }: FencedJob,
): SQL {
  return sql`
    select not exists (select from ${queueJobs} as j where j.queue = ${queue} and j.id = ${id})
      and not exists (select from ${queueResults} as r where r.queue = ${queue} and r.job_id = ${id} and r.fence <> ${fence}) as ended`;
}
