import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import { faultPoint } from '../sql/fault-point.ts';
import { type HeldJob, type Holder, idsAndFences, stillHeld } from '../sql/fence.ts';
import { planAnew } from '../sql/plan-anew.ts';

/**
 * Records that held jobs of one queue are about to begin, which were claimed without beginning: from here on
 * a crash of their worker spends the attempt. Returns the ids of those that are still held; the others must
 * not run.
 *
 * Can be repeated when its answer is lost: it changes no fence and no attempt. No index contains
 * `claimed_at`, so the update is HOT.
 *
 * **Under concurrency.** Fenced as `finishJobs` is: a job that was given back, taken over or ended in between
 * does not match. Where another transaction is just changing the job, this waits for it and looks again.
 */
export async function beginJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  jobs: readonly HeldJob[],
): Promise<Set<number>> {
  const rows = await queryRows(db, tables, beginJobsQuery(tables, holder, jobs));
  await faultPoint('begin: written');
  return new Set(rows.map(({ id }) => Number(id)));
}

export function beginJobsQuery({ queueJobs }: QueueTables, holder: Holder, jobs: readonly HeldJob[]): SQL {
  return sql`
    with i as materialized (
      select id, fence from ${planAnew()} cross join rows from (${idsAndFences(jobs)}) as r(id, fence)
    )
    update ${queueJobs} as j set claimed_at = statement_timestamp()
    where ${stillHeld(holder)}
    returning j.id`;
}
