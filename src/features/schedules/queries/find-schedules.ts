import { type SQL, sql } from 'drizzle-orm';
import { epochMs } from '../../../core/sql/epoch-ms.ts';
import type { Executor } from '../../../core/sql/executor.ts';
import { queryScheduleRows, type ScheduleTables } from '../sql/schedule-tables.ts';
import { type StoredSchedule, scheduleColumns, toStoredSchedule } from '../sql/stored-schedule.ts';

export interface SchedulesPage {
  readonly kind?: string | undefined;
  /** Only those that enqueue into one of these. */
  readonly queues?: readonly string[] | undefined;
  /** The last name of the page before. */
  readonly after?: string | undefined;
  /** How many names are passed over, without reading their rows. */
  readonly offset?: number | undefined;
  readonly limit: number;
}

/** Schedules by name. A plain read. */
export async function findSchedules(
  db: Executor,
  tables: ScheduleTables,
  page: SchedulesPage,
): Promise<StoredSchedule[]> {
  return (await queryScheduleRows(db, tables, findSchedulesQuery(tables, page))).map(toStoredSchedule);
}

export function findSchedulesQuery(
  { queueSchedules }: ScheduleTables,
  { kind, queues, after, offset = 0, limit }: SchedulesPage,
): SQL {
  const those = sql`${after === undefined ? sql`true` : sql`s.name > ${after}`}${
    kind === undefined ? sql`` : sql` and s.kind = ${kind}`
  }${
    queues === undefined
      ? sql``
      : sql` and s.queue in (
        select jsonb_array_elements_text(${JSON.stringify(queues)}::text::jsonb))`
  }`;
  return sql`
    select ${scheduleColumns} from ${queueSchedules} as s
    where ${those}${
      offset === 0
        ? sql``
        : sql` and s.name >= (
        select s.name from ${queueSchedules} as s where ${those} order by s.name limit 1 offset ${offset})`
    }
    order by s.name limit ${limit}`;
}

/** One schedule, and the database's time in milliseconds since 1970; `undefined` when there is none. */
export async function findSchedule(
  db: Executor,
  tables: ScheduleTables,
  name: string,
): Promise<{ readonly schedule: StoredSchedule; readonly nowMs: number } | undefined> {
  const [row] = await queryScheduleRows(db, tables, findScheduleQuery(tables, name));
  return row === undefined ? undefined : { schedule: toStoredSchedule(row), nowMs: Number(row.now_ms) };
}

export function findScheduleQuery({ queueSchedules }: ScheduleTables, name: string): SQL {
  return sql`
    select ${scheduleColumns}, ${epochMs('statement_timestamp()')} as now_ms
    from ${queueSchedules} as s where s.name = ${name}`;
}
