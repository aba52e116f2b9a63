/**
 * The tables of schedules, limits and keys, for the app's own Drizzle schema:
 * `export * from 'drizzle-queue/schema/control'`. This entry loads nothing but drizzle-orm.
 */
import { type ControlTables, createControlTables } from './create-control-tables.ts';

const tables: ControlTables<'queue_', undefined> = createControlTables();

/** `queue_schedules`: what is enqueued again and again, and when. */
export const queueSchedules: ControlTables<'queue_', undefined>['queueSchedules'] = tables.queueSchedules;
/** `queue_limits`: limits that were set at run time. */
export const queueLimits: ControlTables<'queue_', undefined>['queueLimits'] = tables.queueLimits;
/** `queue_usage`: what is in use of the limits of queues and kinds. */
export const queueUsage: ControlTables<'queue_', undefined>['queueUsage'] = tables.queueUsage;
/** `queue_groups`: when claims look at a group next. */
export const queueGroups: ControlTables<'queue_', undefined>['queueGroups'] = tables.queueGroups;
/** `queue_holds`: which jobs hold up those behind them. */
export const queueHolds: ControlTables<'queue_', undefined>['queueHolds'] = tables.queueHolds;
/** `queue_notes`: which groups claims should look at. */
export const queueNotes: ControlTables<'queue_', undefined>['queueNotes'] = tables.queueNotes;
/** `queue_keys`: keys that refuse another job until a time. */
export const queueKeys: ControlTables<'queue_', undefined>['queueKeys'] = tables.queueKeys;

export { type ControlTables, createControlTables } from './create-control-tables.ts';
export type { GroupColumns, GroupsTable } from './queue-groups.ts';
export type { HoldColumns, HoldsTable } from './queue-holds.ts';
export type { KeyColumns, KeysTable } from './queue-keys.ts';
export type { LimitColumns, LimitsTable } from './queue-limits.ts';
export type { NoteColumns, NotesTable } from './queue-notes.ts';
export type { CatchUp, ScheduleColumns, SchedulesTable, TickSettings } from './queue-schedules.ts';
export type { Leases, RateUsed, UsageColumns, UsageTable } from './queue-usage.ts';
