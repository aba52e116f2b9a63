import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type HeldJob, type Holder, idsAndFences, stillHeld } from '../../sql/fence.ts';

/** Locked for the asking transaction, locked by another, or no longer held under this fence. */
export type HeldJobLock = 'ours' | 'locked' | 'gone';

/**
 * Locks the row of one held job until the end of the caller's transaction, and says where it is when that
 * cannot be done.
 *
 * **Under concurrency.** Never waits: a row that another transaction has locked, or has deleted and not
 * committed yet, is `locked`. One that the caller's own transaction has deleted is gone.
 */
export async function lockHeldJob(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  job: HeldJob,
): Promise<HeldJobLock> {
  const [row] = await queryRows(db, tables, lockHeldJobQuery(tables, holder, job));
  if (row?.locked === true) return 'ours';
  return row?.there === true ? 'locked' : 'gone';
}

export function lockHeldJobQuery({ queueJobs }: QueueTables, holder: Holder, job: HeldJob): SQL {
  return sql`
    with i as materialized (select id, fence from rows from (${idsAndFences([job])}) as r(id, fence)),
    locked as materialized (
      select j.id from ${queueJobs} as j where ${stillHeld(holder)} for update skip locked
    )
    select exists (select from locked) as locked,
      exists (select from ${queueJobs} as j where ${stillHeld(holder)}) as there`;
}
