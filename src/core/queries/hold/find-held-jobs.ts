import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type HeldJob, type Holder, idsAndFences, stillHeld } from '../../sql/fence.ts';

/**
 * Which of these jobs a worker still holds, with the fence of each by id. A plain read, which may be out of
 * date when it arrives: use it only to stop work early. Every write checks the fence itself.
 */
export async function findHeldJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  jobs: readonly HeldJob[],
): Promise<Map<number, number>> {
  const rows = await queryRows(db, tables, findHeldJobsQuery(tables, holder, jobs));
  return new Map(rows.map((row) => [Number(row.id), Number(row.fence)]));
}

export function findHeldJobsQuery({ queueJobs }: QueueTables, holder: Holder, jobs: readonly HeldJob[]): SQL {
  return sql`
    with i as materialized (select id, fence from rows from (${idsAndFences(jobs)}) as r(id, fence))
    select j.id, j.fence from ${queueJobs} as j where ${stillHeld(holder)}`;
}
