import { placeOf, type TablePlace } from '../../../core/schema/table-place.ts';
import { defineMetricsTable, type MetricsTable } from './queue-metrics.ts';

/** The table of what workers did, whatever its name. */
export interface MetricsTables<
  TPrefix extends string = string,
  TSchema extends string | undefined = string | undefined,
> {
  queueMetrics: MetricsTable<`${TPrefix}metrics`, TSchema>;
}

/**
 * The table of metrics under another name, to go with those of `createQueueTables`. Destructure it into a
 * top-level export: drizzle-kit does not look inside objects.
 *
 * ```ts
 * export const { queueMetrics } = createMetricsTables({ prefix: 'mail_' });
 * ```
 *
 * @throws TypeError when the prefix is not a plain lower-case name, or the schema is none
 */
export function createMetricsTables<
  const TPrefix extends string = 'queue_',
  const TSchema extends string | undefined = undefined,
>(options: TablePlace<TPrefix, TSchema> = {}): MetricsTables<TPrefix, TSchema> {
  const { prefix, table } = placeOf('createMetricsTables', options);
  return { queueMetrics: defineMetricsTable<`${TPrefix}metrics`, TSchema>(table, `${prefix}metrics`) };
}
