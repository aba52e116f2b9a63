import type { PgTable } from 'drizzle-orm/pg-core';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import type { QueueRates } from './queue-stats.ts';

/** What workers have reported of a queue, where a feature makes them report. */
export interface ReportedRates {
  /** Where the reports are: its size is a part of what an answer costs. */
  readonly table: PgTable;
  /**
   * What was reported in the last minutes; `undefined` when it could not be read in time, or while the table
   * is missing.
   */
  read(db: Database, tables: QueueTables, minutes: number): Promise<QueueRates | undefined>;
}
