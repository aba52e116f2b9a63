import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type HeldJob, idsAndFences } from '../../sql/fence.ts';

export interface IdRange {
  /** Not this one itself. */
  readonly after: number;
  /** This one, too. @default all that are left */
  readonly last?: number | undefined;
}

export interface KnownHoldings {
  readonly queue: string;
  readonly workerId: number;
  /**
   * The jobs that the worker knows it holds. With their fences: it may know a job from a claim that it has
   * lost, and hold it again by one whose result never came.
   */
  readonly except: readonly HeldJob[];
  /** Where to look: no index knows a job's holder, so it reads all of these. */
  readonly ids: IdRange;
}

/**
 * Finds the jobs of one queue that a worker holds without knowing it, after the answer to a claim was lost.
 *
 * **Under concurrency.** A plain read: what it finds may be held by another when it arrives.
 */
export async function findUnknownJobs(
  db: Runner,
  tables: QueueTables,
  holdings: KnownHoldings,
): Promise<HeldJob[]> {
  const rows = await queryRows(db, tables, findUnknownJobsQuery(tables, holdings));
  return rows.map(({ id, fence }) => ({ id: Number(id), fence: Number(fence) }));
}

export function findUnknownJobsQuery(
  { queueJobs }: QueueTables,
  { queue, workerId, except, ids: { after, last = Number.MAX_SAFE_INTEGER } }: KnownHoldings,
): SQL {
  return sql`
    select j.id, j.fence from ${queueJobs} as j
    where j.queue = ${queue} and j.worker_id = ${workerId}
      and j.id > ${after}::int8 and j.id <= ${last}::int8
      and ((j.id, j.fence) in (
        select i.id, i.fence from rows from (${idsAndFences(except)}) as i(id, fence)
      )) is not true`;
}
