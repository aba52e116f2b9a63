import type { QueueMetrics } from '../../core/queue/queue-features.ts';
import type { MetricsTables } from './schema/index.ts';

/** The metrics of a queue, for its figures and its check. What reads them is loaded by the first question. */
export function metricsOfQueue(metrics: MetricsTables['queueMetrics']): QueueMetrics {
  return {
    table: metrics,
    async read(db, tables, minutes) {
      const { readRates } = await import('./rates.ts');
      return await readRates(db, { tables, metrics }, minutes);
    },
    toCheck: {
      tables: [metrics],
      async missing() {
        const { missingMetrics } = await import('./missing-metrics.ts');
        return missingMetrics(metrics);
      },
    },
  };
}
