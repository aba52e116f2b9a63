import type { SQL } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { queryRows, type RawRow, type Runner } from '../../../core/sql/executor.ts';
import { CONTROL_ENTRY } from '../../control/control-entry.ts';
import type { ControlTables } from '../../control/index.ts';

export type ScheduleTables = QueueTables & Pick<ControlTables, 'queueSchedules'>;

/** Runs a statement about schedules. @throws as `queryRows`, with the line that the app's schema lacks */
export async function queryScheduleRows(db: Runner, tables: ScheduleTables, query: SQL): Promise<RawRow[]> {
  return await queryRows(db, tables, query, { entry: CONTROL_ENTRY });
}
