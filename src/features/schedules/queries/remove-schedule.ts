import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../../core/sql/executor.ts';
import { queryScheduleRows, type ScheduleTables } from '../sql/schedule-tables.ts';

/**
 * Removes a schedule; returns `false` when there is none. The jobs that it has enqueued stay.
 *
 * **Under concurrency.** Waits for another open transaction that has just changed the same schedule. A firing
 * either came first, or finds nothing.
 */
export async function removeSchedule(db: Executor, tables: ScheduleTables, name: string): Promise<boolean> {
  return (await queryScheduleRows(db, tables, removeScheduleQuery(tables, name))).length > 0;
}

export function removeScheduleQuery({ queueSchedules }: ScheduleTables, name: string): SQL {
  return sql`
    delete from ${queueSchedules} as s where s.name = ${name} returning s.name`;
}
