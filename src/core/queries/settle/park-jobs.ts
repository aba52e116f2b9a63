import { type SQL, sql } from 'drizzle-orm';
import type { Park } from '../../job/transition.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { arrayText, type HeldJob, type Holder, idsAndFences, stillHeld } from '../../sql/fence.ts';
import { amongFree, freeRows } from '../../sql/free-rows.ts';
import { endHolds } from '../../sql/hold-end.ts';
import { planAnew } from '../../sql/plan-anew.ts';
import { withoutRefusal } from '../../sql/refused-claim.ts';
import { lockPatience, type RowLocks } from '../../sql/row-locks.ts';

export interface ParkedJob extends HeldJob {
  readonly transition: Park;
}

export interface ParkOptions {
  /** `wait` for a row that this transaction itself has locked. @default 'skip' */
  readonly locks?: Exclude<RowLocks, 'briefly'>;
}

/**
 * Releases held jobs of one queue and lets them wait: they are due when `unparkJobs` says so, or when their
 * time is over. Returns the jobs that it put back, by id, each with the reason if its end was requested. This
 * worker no longer held the others under this fence, except those in `locked`: it holds them, but another
 * transaction has locked their rows.
 *
 * **Under concurrency.** Fenced as `finishJobs` is, and it waits for no other transaction. Parking and
 * unparking write the same row, so no wake-up is lost: a job that was unparked since its claim, or is to be
 * cancelled, is put back where it was, due at once. Send it outside of a user's transaction: see
 * `lockPatience`.
 */
export async function parkJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  parks: readonly ParkedJob[],
  options?: ParkOptions,
): Promise<{ readonly parked: Map<number, string | null>; readonly locked: Set<number> }> {
  const rows = await queryRows(db, tables, parkJobsQuery(tables, holder, parks, options));
  const putBack = rows.filter((row) => row.locked !== true);
  return {
    parked: new Map(
      putBack.map((row) => [Number(row.id), row.cancel_reason === null ? null : String(row.cancel_reason)]),
    ),
    locked: new Set(rows.filter((row) => row.locked === true).map(({ id }) => Number(id))),
  };
}

/**
 * `run_at > claimed_at` tells of an `unparkJobs` during the hold: a job is due when it is claimed.
 *
 * @endsHold an outcome after which the job waits
 */
export function parkJobsQuery(
  tables: QueueTables,
  holder: Holder,
  parks: readonly ParkedJob[],
  { locks = 'skip' }: ParkOptions = {},
): SQL {
  const transitions = parks.map(({ transition }) => transition);
  const { queueJobs } = tables;
  return endHolds(tables, {
    queue: holder.queue,
    ctes: sql`
    with i as materialized (
      select id, fence, attempt,
        coalesce(statement_timestamp() + delay_ms * interval '1 millisecond', 'infinity') as run_at
      from ${planAnew()}${lockPatience(tables, locks)} cross join rows from (${idsAndFences(parks)},
        unnest(${arrayText(transitions.map(({ attempt }) => attempt))}::text::int2[]),
        unnest(${arrayText(transitions.map(({ delayMs }) => delayMs ?? 'null'))}::text::float8[])
      ) as r(id, fence, attempt, delay_ms)
    ),
    ${freeRows(tables, stillHeld(holder), locks === 'skip' ? undefined : sql`for no key update`)}`,
    change: {
      set: sql`attempt = i.attempt, blockers = coalesce(j.blockers, 0), errors = ${withoutRefusal},
      run_at = case when j.run_at > j.claimed_at or j.cancel_reason is not null
        then j.run_at else i.run_at end`,
      from: sql`i`,
    },
    where: sql`${amongFree(holder.queue)}
        and i.id = j.id and i.fence = j.fence`,
    returning: sql`j.id, j.cancel_reason`,
    answer: {
      name: 'parked',
      select: sql`
    select id, cancel_reason, false as locked from parked
    union all
    select j.id, null, true from ${queueJobs} as j
    where ${stillHeld(holder)} and j.id not in (select id from parked)`,
    },
  });
}
