import { placeOf, type TablePlace } from '../table-place.ts';
import { defineSchedulesTable, type SchedulesTable } from './queue-schedules.ts';

/** The tables of what controls a queue, whatever their names. */
export interface ControlTables<
  TPrefix extends string = string,
  TSchema extends string | undefined = string | undefined,
> {
  queueSchedules: SchedulesTable<`${TPrefix}schedules`, TSchema>;
}

/**
 * The control tables under other names, to go with those of `createQueueTables`. Destructure them into
 * top-level exports: drizzle-kit does not look inside objects.
 *
 * ```ts
 * export const { queueSchedules } = createControlTables({ prefix: 'mail_' });
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
  };
}
