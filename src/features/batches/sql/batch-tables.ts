import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import type { BatchesTable } from '../schema/queue-batches.ts';
import type { TalliesTable } from '../schema/queue-tallies.ts';
import type { WaitsTable } from '../schema/queue-waits.ts';

export interface BatchTables {
  readonly queueBatches: BatchesTable;
  readonly queueWaits: WaitsTable;
  readonly queueTallies: TalliesTable;
}

export type TablesOfBatches = QueueTables & BatchTables;

/** The entry whose export makes drizzle-kit create the tables. */
export const BATCHES_ENTRY = 'drizzle-queue/schema/workflows';
