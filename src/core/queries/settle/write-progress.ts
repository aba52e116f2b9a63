import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type HeldJob, type Holder, idsAndFences, stillHeld } from '../../sql/fence.ts';

export interface JobProgress extends HeldJob {
  /** JSON text. */
  readonly progress: string;
}

/**
 * Writes how far held jobs of one queue are. Returns the ids that it wrote. The worker no longer holds the
 * others under this fence, or another transaction has locked them.
 *
 * **Under concurrency.** Fenced, as `finishJobs`. Never waits: it leaves out a locked row, such as one that
 * the handler's own `complete(tx)` holds. So two statements about the same jobs cannot deadlock.
 */
export async function writeProgress(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  jobs: readonly JobProgress[],
): Promise<Set<number>> {
  const rows = await queryRows(db, tables, writeProgressQuery(tables, holder, jobs));
  return new Set(rows.map((row) => Number(row.id)));
}

export function writeProgressQuery(
  { queueJobs }: QueueTables,
  holder: Holder,
  jobs: readonly JobProgress[],
): SQL {
  const values = `[${jobs.map(({ progress }) => progress).join(',')}]`;
  return sql`
    with i as materialized (
      select id, fence, progress
      from rows from (${idsAndFences(jobs)}, jsonb_array_elements(${values}::text::jsonb))
        as r(id, fence, progress)
    ),
    free as (
      select j.id from ${queueJobs} as j
      where ${stillHeld(holder)}
      for no key update skip locked
    )
    update ${queueJobs} as j set progress = i.progress
    from i
    where j.queue = ${holder.queue} and j.id = any(array(select id from free))
      and i.id = j.id and i.fence = j.fence
    returning j.id`;
}
