import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type HeldJob, type Holder, idsAndFences, stillHeld } from '../../sql/fence.ts';
import { amongFree, freeRows } from '../../sql/free-rows.ts';
import { endHolds } from '../../sql/hold-end.ts';
import { lockPatience } from '../../sql/row-locks.ts';

export interface ReleaseHolder extends Holder {
  /**
   * Whether the worker may have begun what it does not know: then a job whose beginning is recorded has spent
   * its attempt. Else it was never begun, whatever its claim says.
   *
   * @default false
   */
  readonly mayHaveBegun?: boolean;
}

/**
 * Gives back jobs of one queue that a worker holds without knowing it, after the answer to a claim was lost.
 * Returns how many, and the ids of those that it still holds, but another transaction has locked. The
 * attempts are given back too, since a job that its worker does not know of was never begun; unless the
 * server may have forgotten that it has ended.
 *
 * **Under concurrency.** It names what it gives back by id and fence, so it may arrive at any time, and
 * twice: a job that a peer has taken over, or that the worker has claimed again since, does not match. A
 * single statement that gave back whatever the worker does not know of would, if the network held it up, end
 * jobs that were claimed after it was sent. It waits for no other transaction: a locked row is left alone.
 * One whose lock was just released may still be named as locked.
 */
export async function releaseJobs(
  db: Runner,
  tables: QueueTables,
  holder: ReleaseHolder,
  jobs: readonly HeldJob[],
): Promise<{ readonly released: number; readonly locked: ReadonlySet<number> }> {
  const rows = await queryRows(db, tables, releaseJobsQuery(tables, holder, jobs));
  const locked = new Set(rows.filter((row) => row.locked === true).map(({ id }) => Number(id)));
  return { released: rows.length - locked.size, locked };
}

/** @endsHold a claim whose answer was lost */
export function releaseJobsQuery(
  tables: QueueTables,
  { mayHaveBegun = false, ...holder }: ReleaseHolder,
  jobs: readonly HeldJob[],
): SQL {
  const { queueJobs } = tables;
  return endHolds(tables, {
    ctes: sql`
    with i as materialized (
      select id, fence
      from rows from (${idsAndFences(jobs)}) as r(id, fence)${lockPatience(tables, 'skip')}
    ),
    ${freeRows(tables, stillHeld(holder))}`,
    queue: holder.queue,
    change: {
      set: mayHaveBegun
        ? sql`attempt = j.attempt - (j.claimed_at is null)::int4`
        : sql`attempt = j.attempt - 1`,
    },
    where: amongFree(holder.queue),
    returning: sql`j.id`,
    answer: {
      name: 'released',
      select: sql`
    select id, false as locked from released
    union all
    select j.id, true from ${queueJobs} as j
    where ${stillHeld(holder)} and j.id not in (select id from released)`,
    },
  });
}
