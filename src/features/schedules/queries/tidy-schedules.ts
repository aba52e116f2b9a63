import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { isDistributed } from '../../../core/sql/statement-context.ts';
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
 * **Under concurrency.** Skips rows that another transaction has locked, so it never waits. On Citus, which
 * cannot lock rows of a reference table before it changes them, it sends two statements, which wait for them.
 */
export async function tidySchedules(db: Runner, tables: ScheduleTables, tidying: Tidying): Promise<void> {
  if (isDistributed(tables)) {
    await queryScheduleRows(db, tables, renewSchedulesQuery(tables, tidying));
    await queryScheduleRows(db, tables, forgetSchedulesQuery(tables, tidying));
    return;
  }
  await queryScheduleRows(db, tables, tidySchedulesQuery(tables, tidying));
}

export function renewSchedulesQuery(
  { queueSchedules }: ScheduleTables,
  { declared, renewMs }: Pick<Tidying, 'declared' | 'renewMs'>,
): SQL {
  return sql`
    update ${queueSchedules} as s set seen_at = statement_timestamp()
    where s.name in (select jsonb_array_elements_text(${JSON.stringify(declared)}::text::jsonb))
      and s.seen_at < ${before(renewMs)}`;
}

export function forgetSchedulesQuery(
  { queueSchedules }: ScheduleTables,
  { declared, forgetMs }: Pick<Tidying, 'declared' | 'forgetMs'>,
): SQL {
  return sql`
    delete from ${queueSchedules} as s
    where s.declared_by is not null and s.seen_at < ${before(forgetMs)}
      and s.name not in (select jsonb_array_elements_text(${JSON.stringify(declared)}::text::jsonb))`;
}

function before(ms: number): SQL {
  return sql`statement_timestamp() - ${ms}::float8 * interval '1 millisecond'`;
}

/** @insteadOnCitus renewSchedulesQuery */
export function tidySchedulesQuery(
  { queueSchedules }: ScheduleTables,
  { declared, renewMs, forgetMs }: Tidying,
): SQL {
  return sql`
    with renewable as (
      select s.name from ${queueSchedules} as s
      where s.name in (select jsonb_array_elements_text(${JSON.stringify(declared)}::text::jsonb))
        and s.seen_at < ${before(renewMs)}
      for update skip locked
    ),
    renewed as (
      update ${queueSchedules} as s set seen_at = statement_timestamp()
      where s.name in (select name from renewable)
      returning s.name
    ),
    forgotten as (
      select s.name from ${queueSchedules} as s
      where s.declared_by is not null and s.seen_at < ${before(forgetMs)}
        and s.name not in (select jsonb_array_elements_text(${JSON.stringify(declared)}::text::jsonb))
      for update skip locked
    )
    delete from ${queueSchedules} as s where s.name in (select name from forgotten)`;
}
