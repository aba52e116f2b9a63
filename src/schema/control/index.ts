/**
 * The tables of schedules, for the app's own Drizzle schema:
 * `export * from 'drizzle-queue/schema/control'`. This entry loads nothing but drizzle-orm.
 */
import { type ControlTables, createControlTables } from './create-control-tables.ts';

const tables: ControlTables<'queue_', undefined> = createControlTables();

/** `queue_schedules`: what is enqueued again and again, and when. */
export const queueSchedules: ControlTables<'queue_', undefined>['queueSchedules'] = tables.queueSchedules;

export { type ControlTables, createControlTables } from './create-control-tables.ts';
export type { CatchUp, ScheduleColumns, SchedulesTable, TickSettings } from './queue-schedules.ts';
