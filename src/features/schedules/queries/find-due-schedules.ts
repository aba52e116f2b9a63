import { type SQL, sql } from 'drizzle-orm';
import { epochMs } from '../../../core/sql/epoch-ms.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { queryScheduleRows, type ScheduleTables } from '../sql/schedule-tables.ts';
import { type StoredTiming, timingColumns, toStoredTiming } from '../sql/stored-schedule.ts';

export interface ScheduleQuestion {
  /** The names that it declares itself. */
  readonly declared: readonly string[];
  /** The kinds that it has handlers for: it also fires those of these that were set, and not declared. */
  readonly kinds: readonly string[];
  /** Names to leave out. */
  readonly except: readonly string[];
  /** How far to look ahead, in milliseconds. */
  readonly horizonMs: number;
  readonly limit: number;
}

/** A schedule, and how far its next tick is. */
export interface DueSchedule extends StoredTiming {
  /** Not above 0 when it is due, by the database's clock. */
  readonly dueInMs: number;
  /** The database's time, in milliseconds since 1970. */
  readonly nowMs: number;
  /** How many bytes one of its jobs takes: the payload as it is stored, perhaps compressed. */
  readonly jobBytes: number;
}

/**
 * The schedules that tick next, in order, due or not.
 *
 * **Under concurrency.** A plain read: another worker may fire what it found, so a firing names the revision
 * that was read. It reads the index on `next_at` up to the horizon, and no schedule beyond.
 */
export async function findDueSchedules(
  db: Runner,
  tables: ScheduleTables,
  question: ScheduleQuestion,
): Promise<DueSchedule[]> {
  const rows = await queryScheduleRows(db, tables, findDueSchedulesQuery(tables, question));
  return rows.map((row) => ({
    ...toStoredTiming(row),
    dueInMs: Number(row.next_at) - Number(row.now_ms),
    nowMs: Math.floor(Number(row.now_ms)),
    jobBytes: Number(row.job_bytes),
  }));
}

export function findDueSchedulesQuery(
  { queueSchedules }: ScheduleTables,
  { declared, kinds, except, horizonMs, limit }: ScheduleQuestion,
): SQL {
  // `is true` keeps each `in` a hashed subplan: a join would read the whole table.
  return sql`
    select ${timingColumns}, ${epochMs('statement_timestamp()')} as now_ms,
      pg_column_size(s.payload) + pg_column_size(s.settings) as job_bytes
    from ${queueSchedules} as s
    where s.paused_at is null
      and s.next_at <= statement_timestamp() + ${horizonMs}::float8 * interval '1 millisecond'
      and (s.name in (${names(declared)})
        or s.declared_by is null and s.kind in (${names(kinds)})) is true
      and (s.name in (${names(except)})) is not true
    order by s.next_at limit ${limit}`;
}

function names(texts: readonly string[]): SQL {
  return sql`select jsonb_array_elements_text(${JSON.stringify(texts)}::text::jsonb)`;
}
