import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { queryScheduleRows, type ScheduleTables } from '../sql/schedule-tables.ts';

/** The schedules that a worker declares, and when it removes schedules that no worker declares any more. */
export interface Tidying {
  /** The names that it declares. */
  readonly declared: readonly string[];
  /** How old the last sign of a declaration must be to be renewed, in milliseconds. */
  readonly renewMs: number;
  /** How old it must be for the schedule to be removed. */
  readonly forgetMs: number;
}

/**
 * Records that a worker still declares its schedules, and removes those that no worker has declared for long.
 *
 * **Under concurrency.** Skips rows that another transaction has locked, so it never waits.
 */
export async function tidySchedules(db: Runner, tables: ScheduleTables, tidying: Tidying): Promise<void> {
  await queryScheduleRows(db, tables, tidySchedulesQuery(tables, tidying));
}

export function tidySchedulesQuery(
  { queueSchedules }: ScheduleTables,
  { declared, renewMs, forgetMs }: Tidying,
): SQL {
  const age = (ms: number) => sql`statement_timestamp() - ${ms}::float8 * interval '1 millisecond'`;
  return sql`
    with renewable as (
      select s.name from ${queueSchedules} as s
      where s.name in (select jsonb_array_elements_text(${JSON.stringify(declared)}::text::jsonb))
        and s.seen_at < ${age(renewMs)}
      for update skip locked
    ),
    renewed as (
      update ${queueSchedules} as s set seen_at = statement_timestamp()
      where s.name in (select name from renewable)
      returning s.name
    ),
    forgotten as (
      select s.name from ${queueSchedules} as s
      where s.declared_by is not null and s.seen_at < ${age(forgetMs)}
        and s.name not in (select jsonb_array_elements_text(${JSON.stringify(declared)}::text::jsonb))
      for update skip locked
    )
    delete from ${queueSchedules} as s where s.name in (select name from forgotten)`;
}
