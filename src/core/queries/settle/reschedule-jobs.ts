import { type SQL, sql } from 'drizzle-orm';
import type { Reschedule } from '../../job/transition.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type RawRow, type Runner } from '../../sql/executor.ts';
import { arrayText, type HeldJob, type Holder, idsAndFences, stillHeld } from '../../sql/fence.ts';
import { amongFree, freeRows } from '../../sql/free-rows.ts';
import { endHolds } from '../../sql/hold-end.ts';
import { planAnew } from '../../sql/plan-anew.ts';
import { withError, withTime } from '../../sql/recorded-error.ts';
import { lockPatience, type RowLocks } from '../../sql/row-locks.ts';
import { groupsIn, membersIn } from '../../sql/statement-context.ts';

export interface RescheduledJob extends HeldJob {
  readonly transition: Reschedule;
}

export interface RescheduleOptions {
  /** Anything but `wait` only outside of a user's transaction: see `lockPatience`. @default 'wait' */
  readonly locks?: RowLocks;
}

/**
 * Releases held jobs of one queue: they are due after a delay or where they were. Returns the jobs that it
 * put back, by id, each with the reason if its end was requested: then it must not run again. This worker no
 * longer held the others under this fence.
 *
 * **Under concurrency.** Fenced as `finishJobs` is. The new `run_at` is the database's time plus the delay,
 * computed before the update so that the update itself holds no function: it can then be pushed to wherever
 * the row lives.
 */
export async function rescheduleJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  reschedules: readonly RescheduledJob[],
  options?: RescheduleOptions,
): Promise<Map<number, string | null>> {
  const rows = await queryRows(db, tables, rescheduleJobsQuery(tables, holder, reschedules, options));
  return new Map(rows.map(toRescheduled));
}

/**
 * Puts those of the jobs back that no other transaction has locked. Of the others, `locked` names those that
 * were still held, so that the caller can try again.
 *
 * **Under concurrency.** As {@link rescheduleJobs}, except that it waits for no other transaction: a locked
 * row is left alone. A row whose lock was just released may still be named as locked.
 */
export async function rescheduleFreeJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  reschedules: readonly RescheduledJob[],
): Promise<{ readonly rescheduled: Map<number, string | null>; readonly locked: Set<number> }> {
  const rows = await queryRows(
    db,
    tables,
    rescheduleJobsQuery(tables, holder, reschedules, { locks: 'skip' }),
  );
  return {
    rescheduled: new Map(rows.filter((row) => row.locked !== true).map(toRescheduled)),
    locked: new Set(rows.filter((row) => row.locked === true).map(({ id }) => Number(id))),
  };
}

function toRescheduled(row: RawRow): [number, string | null] {
  return [Number(row.id), row.cancel_reason === null ? null : String(row.cancel_reason)];
}

/**
 * @endsHold an outcome after which the job goes on later
 * @insteadOnCitus (waiting briefly) rescheduleJobsQuery, of free rows: it would wait there for as long as a
 * row is locked
 * @insteadOnCitus (of members) an error: no worker starts there whose queue has workflows
 */
export function rescheduleJobsQuery(
  tables: QueueTables,
  holder: Holder,
  reschedules: readonly RescheduledJob[],
  { locks = 'wait' }: RescheduleOptions = {},
): SQL {
  const { queueJobs } = tables;
  const transitions = reschedules.map(({ transition }) => transition);
  // Once it has begun, nothing but time makes it due: what its attempt has waited for does not.
  const mayWait = membersIn(tables) !== undefined;
  const began = mayWait ? sql`, began` : sql``;
  const ctes = sql`
    with i as materialized (
      select id, fence, attempt, statement_timestamp() + delay_ms * interval '1 millisecond' as run_at,
        ${withTime(sql`nullif(error, 'null')`)} as error${began}
      from ${planAnew()}${lockPatience(tables, locks)}
      cross join rows from (
        ${idsAndFences(reschedules)},
        unnest(${arrayText(transitions.map(({ attempt }) => attempt))}::text::int2[]),
        unnest(${arrayText(transitions.map(({ delayMs }) => delayMs ?? 'null'))}::text::float8[]),
        jsonb_array_elements(${JSON.stringify(transitions.map(({ error }) => error))}::text::jsonb)${
          mayWait
            ? sql`,
        unnest(${arrayText(transitions.map(({ unbegun = false }) => !unbegun))}::text::bool[])`
            : sql``
        }
      ) as r(id, fence, attempt, delay_ms, error${began})
    )`;
  const errors = sql`errors = ${withError(sql`j.errors`, sql`i.error`)}${
    mayWait ? sql`, blockers = case when not i.began then j.blockers end` : sql``
  }`;
  // It keeps its place in its group: those behind it wait.
  const keepsPlace = groupsIn(tables, holder.queue)?.keepsPlace(holder.queue) === true;
  const change = {
    set: keepsPlace
      ? sql`attempt = i.attempt, ${errors}`
      : sql`attempt = i.attempt, run_at = coalesce(i.run_at, j.run_at),
      ${errors}`,
    from: sql`i`,
  };
  const blocks = keepsPlace
    ? sql`select i.id, i.run_at as until, null::int8 as worker_id from i where i.run_at is not null`
    : undefined;
  const returning = sql`j.id, j.cancel_reason`;
  if (locks !== 'skip') {
    return endHolds(tables, {
      queue: holder.queue,
      ctes,
      change,
      blocks,
      where: sql`i.id = j.id and i.fence = j.fence and ${stillHeld(holder)}`,
      returning,
    });
  }
  return endHolds(tables, {
    queue: holder.queue,
    blocks,
    ctes: sql`${ctes},
    ${freeRows(tables, stillHeld(holder))}`,
    change,
    where: sql`${amongFree(holder.queue)}
      and i.id = j.id and i.fence = j.fence`,
    returning,
    answer: {
      name: 'rescheduled',
      select: sql`
    select id, cancel_reason, false as locked from rescheduled
    union all
    select j.id, null, true from ${queueJobs} as j
    where ${stillHeld(holder)} and j.id not in (select id from rescheduled)`,
    },
  });
}
