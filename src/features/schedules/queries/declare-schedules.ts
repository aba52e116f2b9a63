import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { jsonRows } from '../../../core/sql/json-rows.ts';
import { lockPatience } from '../../../core/sql/row-locks.ts';
import { queryScheduleRows, type ScheduleTables } from '../sql/schedule-tables.ts';
import {
  firstRevision,
  NEW_COLUMNS,
  type NewSchedule,
  newScheduleRow,
  replaceSchedule,
  SET_COLUMNS,
  ticksAlike,
} from '../sql/stored-schedule.ts';

export interface Declaration {
  readonly workerId: number;
  readonly schedules: readonly NewSchedule[];
  /** The names of those whose due ticks cannot be fired as they are stored. */
  readonly unfit: readonly string[];
}

export interface Declared {
  /** Whether it wrote all that it wanted to. */
  readonly all: boolean;
  /** The names of the schedules that it wrote. */
  readonly written: readonly string[];
}

/**
 * Writes a worker's schedules, except those that a younger living worker has declared; without changes it is
 * a plain read. So of workers that declare different things the one that started last prevails while it
 * lives. A schedule with a new timing is left alone while a tick of the old one is due, which would be lost,
 * unless that tick cannot be fired: then only the new version may help.
 *
 * **Under concurrency.** What another has written since the read is left alone. Waits 100 ms at most for a
 * row that a user's open transaction has changed, and then fails with 55P03.
 */
export async function declareSchedules(
  db: Runner,
  tables: ScheduleTables,
  declaration: Declaration,
): Promise<Declared> {
  const rows = await queryScheduleRows(db, tables, declareSchedulesQuery(tables, declaration));
  const written = rows.filter((row) => row.written === true).map(({ name }) => String(name));
  return { all: written.length === rows.length, written };
}

/** @waitsOnCitus docs/scaling.md says so of schedules; jobs go on */
export function declareSchedulesQuery(
  tables: ScheduleTables,
  { workerId, schedules, unfit }: Declaration,
): SQL {
  const { queueSchedules, queueWorkers } = tables;
  return sql`
    with i as materialized (
      select i.name, i.queue, i.kind, coalesce(i.payload, 'null'::jsonb) as payload, i.settings, i.cron,
        i.every_ms, i.time_zone, i.catch_up, i.overlap, to_timestamp(i.starts_at_ms / 1000) as starts_at,
        to_timestamp(i.ends_at_ms / 1000) as ends_at
      from ${jsonRows(schedules.map(newScheduleRow), NEW_COLUMNS)} as i
    ),
    wanted as materialized (
      select i.*, coalesce(s.revision, ${firstRevision('statement_timestamp()')}) as revision,
        (s.name is null or ${ticksAlike('i')} or s.paused_at is not null
          or (s.next_at > statement_timestamp()) is not false
          or s.name in (select jsonb_array_elements_text(${JSON.stringify(unfit)}::text::jsonb))) as possible
      from i left join ${queueSchedules} as s
        on s.name = i.name and s.name = any(array(select name from i))${lockPatience(tables, 'briefly')}
      where s.declared_by is null or s.declared_by < ${workerId}::int8
        or not exists (select from ${queueWorkers} as w where w.id = s.declared_by)
    ),
    written as (
      insert into ${queueSchedules} as s (
        ${SET_COLUMNS}, next_at, passed_at, revision, declared_by, seen_at, created_at
      )
      select ${SET_COLUMNS}, now.at, now.at, w.revision, ${workerId}::int8, now.at, now.at
      from wanted as w cross join (select statement_timestamp() as at) as now
      where w.possible order by w.name
      on conflict (name) do update set ${replaceSchedule}
      where s.revision = excluded.revision
      returning s.name
    )
    select w.name, (w.name in (select name from written)) is true as written from wanted as w`;
}
