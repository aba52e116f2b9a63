import { type SQL, sql } from 'drizzle-orm';
import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { Executor } from '../../../core/sql/executor.ts';
import { jsonRows } from '../../../core/sql/json-rows.ts';
import { REQUESTED } from '../../../core/sql/wake-channel.ts';
import { queryScheduleRows, type ScheduleTables } from '../sql/schedule-tables.ts';
import {
  firstRevision,
  NEW_COLUMNS,
  type NewSchedule,
  newScheduleRow,
  newSchedules,
  replaceSchedule,
  SET_COLUMNS,
  type StoredSchedule,
  scheduleColumns,
  toStoredSchedule,
} from '../sql/stored-schedule.ts';

export interface ScheduleToSet {
  readonly schedule: NewSchedule;
  readonly channel: string | undefined;
}

/**
 * Creates a schedule, or changes the one of this name; a pause stays. Returns it as it is stored, or
 * `undefined` when it is declared in code, and was left alone.
 *
 * **Under concurrency.** Waits for another open transaction that has just changed the same schedule, and
 * then replaces what that has set. Workers pass over the row until this transaction ends, and fire with what
 * it has set from then on.
 */
export async function setSchedule(
  db: Executor,
  tables: ScheduleTables,
  set: ScheduleToSet,
): Promise<StoredSchedule | undefined> {
  const [row] = await queryScheduleRows(db, tables, setScheduleQuery(tables, set.schedule));
  if (row === undefined) return undefined;
  if (set.channel !== undefined) await notifyWorkers(db, tables, REQUESTED, set.channel);
  return toStoredSchedule(row);
}

export function setScheduleQuery({ queueSchedules }: ScheduleTables, schedule: NewSchedule): SQL {
  return sql`
    with i as (
      select * from ${jsonRows([newScheduleRow(schedule)], NEW_COLUMNS)} as i
    ),
    stored as (
      insert into ${queueSchedules} as s (${SET_COLUMNS}, next_at, passed_at, seen_at, created_at, revision)
      select ${newSchedules}, now.at, now.at, now.at, now.at, ${firstRevision('now.at')}
      from i cross join (select statement_timestamp() as at) as now
      on conflict (name) do update set ${replaceSchedule}
      where s.declared_by is null
      returning s.*
    )
    select ${scheduleColumns} from stored as s`;
}
