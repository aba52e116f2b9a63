import type { SQL } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { queryRows, type RawRow, type Runner } from '../../../core/sql/executor.ts';
import type { MetricsTables } from '../schema/index.ts';
import { METRICS_ENTRY } from './metrics-entry.ts';

/** The queue's tables and that of what workers did. */
export interface KnownMetrics {
  readonly tables: QueueTables;
  readonly metrics: MetricsTables['queueMetrics'];
}

/** Runs a statement about metrics. @throws as `queryRows`, with the line that the app's schema lacks */
export async function queryMetrics(db: Runner, known: KnownMetrics, query: SQL): Promise<RawRow[]> {
  const all: QueueTables & MetricsTables = { ...known.tables, queueMetrics: known.metrics };
  return await queryRows(db, all, query, { entry: METRICS_ENTRY });
}
