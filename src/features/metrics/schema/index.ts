/**
 * The table of what workers did, for the app's own Drizzle schema:
 * `export * from 'drizzle-queue/schema/metrics'`. This entry loads nothing but drizzle-orm.
 */
import { createMetricsTables, type MetricsTables } from './create-metrics-tables.ts';

const tables: MetricsTables<'queue_', undefined> = createMetricsTables();

/** `queue_metrics`: how many attempts ended, how, and how long they waited and ran. */
export const queueMetrics: MetricsTables<'queue_', undefined>['queueMetrics'] = tables.queueMetrics;

export { createMetricsTables, type MetricsTables } from './create-metrics-tables.ts';
export type { Histogram, MetricColumns, MetricsTable } from './queue-metrics.ts';
