import type { ReportedRates } from '../../core/queue/stats/reported-rates.ts';
import type { MetricsTables } from './schema/index.ts';

/** The metrics of a queue, for its figures. What reads them is loaded by the first question. */
export function metricsOfQueue(metrics: MetricsTables['queueMetrics']): ReportedRates {
  return {
    table: metrics,
    read: async (db, tables, minutes) =>
      (await import('./rates.ts')).readRates(db, { tables, metrics }, minutes),
  };
}
