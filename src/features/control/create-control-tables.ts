import { placeOf, type TablePlace } from '../../core/schema/table-place.ts';
import { defineGroupsTable, type GroupsTable } from './queue-groups.ts';
import { defineHoldsTable, type HoldsTable } from './queue-holds.ts';
import { defineKeysTable, type KeysTable } from './queue-keys.ts';
import { defineLimitsTable, type LimitsTable } from './queue-limits.ts';
import { defineNotesTable, type NotesTable } from './queue-notes.ts';
import { defineSchedulesTable, type SchedulesTable } from './queue-schedules.ts';
import { defineUsageTable, type UsageTable } from './queue-usage.ts';

/** The tables of what controls a queue, whatever their names. */
export interface ControlTables<
  TPrefix extends string = string,
  TSchema extends string | undefined = string | undefined,
> {
  queueSchedules: SchedulesTable<`${TPrefix}schedules`, TSchema>;
  queueLimits: LimitsTable<`${TPrefix}limits`, TSchema>;
  queueUsage: UsageTable<`${TPrefix}usage`, TSchema>;
  queueGroups: GroupsTable<`${TPrefix}groups`, TSchema>;
  queueHolds: HoldsTable<`${TPrefix}holds`, TSchema>;
  queueNotes: NotesTable<`${TPrefix}notes`, TSchema>;
  queueKeys: KeysTable<`${TPrefix}keys`, TSchema>;
}

/**
 * The control tables under other names, to go with those of `createQueueTables`. Destructure them into
 * top-level exports: drizzle-kit does not look inside objects.
 *
 * ```ts
 * export const { queueSchedules, queueLimits, queueUsage, queueGroups, queueHolds, queueNotes,
 *   queueKeys } = createControlTables({ prefix: 'mail_' });
 * ```
 *
 * @throws TypeError when the prefix is not a plain lower-case name, or the schema is none
 */
export function createControlTables<
  const TPrefix extends string = 'queue_',
  const TSchema extends string | undefined = undefined,
>(options: TablePlace<TPrefix, TSchema> = {}): ControlTables<TPrefix, TSchema> {
  const { prefix, table } = placeOf('createControlTables', options);
  return {
    queueSchedules: defineSchedulesTable<`${TPrefix}schedules`, TSchema>(table, `${prefix}schedules`),
    queueLimits: defineLimitsTable<`${TPrefix}limits`, TSchema>(table, `${prefix}limits`),
    queueUsage: defineUsageTable<`${TPrefix}usage`, TSchema>(table, `${prefix}usage`),
    queueGroups: defineGroupsTable<`${TPrefix}groups`, TSchema>(table, `${prefix}groups`),
    queueHolds: defineHoldsTable<`${TPrefix}holds`, TSchema>(table, `${prefix}holds`),
    queueNotes: defineNotesTable<`${TPrefix}notes`, TSchema>(table, `${prefix}notes`),
    queueKeys: defineKeysTable<`${TPrefix}keys`, TSchema>(table, `${prefix}keys`),
  };
}
