import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type HeldJob, type Holder, idsAndFences, stillHeld } from '../../sql/fence.ts';

/** Locked for the asking transaction, locked by another, or no longer held under this fence. */
export type HeldJobLock = 'ours' | 'locked' | 'gone';

/** Which jobs' rows are locked for the asking transaction, and which by another; the rest are gone. */
export interface HeldJobLocks {
  readonly here: ReadonlySet<number>;
  readonly elsewhere: ReadonlySet<number>;
}

/** {@link lockHeldJobs} of one job: where its row is. */
export async function lockHeldJob(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  job: HeldJob,
): Promise<HeldJobLock> {
  const { here, elsewhere } = await lockHeldJobs(db, tables, holder, [job]);
  return here.size > 0 ? 'ours' : elsewhere.size > 0 ? 'locked' : 'gone';
}

/**
 * Locks the rows of held jobs of one queue until the end of the caller's transaction, and says where those
 * are that it cannot lock.
 *
 * **Under concurrency.** Never waits, so two transactions that ask for the same rows cannot deadlock. A row
 * that another transaction has locked, or has deleted and not committed yet, is elsewhere. One that the
 * caller's own transaction has deleted is gone. What it has locked stays locked, even if that is not all.
 */
export async function lockHeldJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  jobs: readonly HeldJob[],
): Promise<HeldJobLocks> {
  const rows = await queryRows(db, tables, lockHeldJobsQuery(tables, holder, jobs));
  const idsOf = (locked: boolean) =>
    new Set(rows.filter((row) => row.locked === locked).map(({ id }) => Number(id)));
  return { here: idsOf(true), elsewhere: idsOf(false) };
}

export function lockHeldJobsQuery({ queueJobs }: QueueTables, holder: Holder, jobs: readonly HeldJob[]): SQL {
  return sql`
    with i as materialized (select id, fence from rows from (${idsAndFences(jobs)}) as r(id, fence)),
    locked as materialized (
      select j.id from ${queueJobs} as j where ${stillHeld(holder)} for update skip locked
    )
    select j.id, j.id in (select id from locked) as locked
    from ${queueJobs} as j where ${stillHeld(holder)}`;
}
