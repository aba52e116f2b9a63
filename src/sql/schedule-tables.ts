import type { SQL } from 'drizzle-orm';
import type { ControlTables } from '../schema/control/index.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { CONTROL_ENTRY } from './control-entry.ts';
import { queryRows, type RawRow, type Runner } from './executor.ts';

/** The tables that statements about schedules use. */
export type ScheduleTables = QueueTables & Pick<ControlTables, 'queueSchedules'>;

/** Runs a statement about schedules. @throws as `queryRows`, with the line that the app's schema lacks */
export async function queryScheduleRows(db: Runner, tables: ScheduleTables, query: SQL): Promise<RawRow[]> {
  return await queryRows(db, tables, query, { entry: CONTROL_ENTRY });
}
