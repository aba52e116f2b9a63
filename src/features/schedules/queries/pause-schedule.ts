import { type SQL, sql } from 'drizzle-orm';
import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { Executor } from '../../../core/sql/executor.ts';
import { REQUESTED } from '../../../core/sql/wake-channel.ts';
import { queryScheduleRows, type ScheduleTables } from '../sql/schedule-tables.ts';

/** Whether a change of a schedule changed anything, and whether there is such a schedule. */
export interface ScheduleChange {
  readonly changed: boolean;
  readonly known: boolean;
}

/**
 * Pauses a schedule: it keeps its place, and does not fire.
 *
 * **Under concurrency.** Waits for another open transaction that has just changed the same schedule. A firing
 * that came first has fired; one that comes later finds the pause.
 */
export async function pauseSchedule(
  db: Executor,
  tables: ScheduleTables,
  name: string,
): Promise<ScheduleChange> {
  return toChange(await queryScheduleRows(db, tables, pauseScheduleQuery(tables, name)));
}

export function pauseScheduleQuery({ queueSchedules }: ScheduleTables, name: string): SQL {
  return sql`
    with changed as (
      update ${queueSchedules} as s set paused_at = statement_timestamp()
      where s.name = ${name} and s.paused_at is null
      returning s.name
    )
    select exists (select name from changed) as changed,
      exists (select s.name from ${queueSchedules} as s where s.name = ${name}) as known`;
}

/**
 * Ends the pause of a schedule; workers are notified on `channel` at the commit, unless that is `undefined`.
 *
 * **Under concurrency.** As {@link pauseSchedule}.
 */
export async function resumeSchedule(
  db: Executor,
  tables: ScheduleTables,
  resume: { readonly name: string; readonly channel: string | undefined },
): Promise<ScheduleChange> {
  const change = toChange(await queryScheduleRows(db, tables, resumeScheduleQuery(tables, resume.name)));
  if (!change.changed || resume.channel === undefined) return change;
  await notifyWorkers(db, tables, REQUESTED, resume.channel);
  return change;
}

export function resumeScheduleQuery({ queueSchedules }: ScheduleTables, name: string): SQL {
  return sql`
    with changed as (
      update ${queueSchedules} as s set paused_at = null
      where s.name = ${name} and s.paused_at is not null
      returning s.name
    )
    select exists (select name from changed) as changed,
      exists (select s.name from ${queueSchedules} as s where s.name = ${name}) as known`;
}

function toChange([row]: readonly Readonly<Record<string, unknown>>[]): ScheduleChange {
  return { changed: row?.changed === true, known: row?.known === true };
}
