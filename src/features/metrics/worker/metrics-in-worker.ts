import type { BackgroundFeature } from '../../../core/worker/background-feature.ts';
import { firstPruneWithinMs, Pruning } from '../../../core/worker/upkeep/prune.ts';
import { pruneMetrics } from '../queries/prune-metrics.ts';
import type { MetricsTables } from '../schema/index.ts';
import { METRICS_ENTRY } from '../sql/metrics-entry.ts';
import { HourlyTotals } from './hourly-totals.ts';
import { Reporting } from './reporting.ts';

const FIRST_WITHIN_MS = 60_000;

/** What a worker does for metrics: it reports how attempts end, adds up the hours and prunes what is old. */
export function metricsInWorker(queueMetrics: MetricsTables['queueMetrics']): BackgroundFeature {
  return {
    tables: { tables: { queueMetrics }, entry: METRICS_ENTRY },
    forWorker({ statements, tables, workerId, events, until }) {
      const db = statements.of('upkeep');
      const known = { tables, metrics: queueMetrics };
      const reporting = new Reporting({ db, workerId, events, known });
      const pruning = new Pruning({
        prune: (limit) => pruneMetrics(db, known, limit),
        what: 'metrics',
        firstWithinMs: firstPruneWithinMs(until, FIRST_WITHIN_MS),
        events,
      });
      return {
        background: [reporting, new HourlyTotals({ db, known, events, until }), pruning],
        noteAttempt: (ended) => reporting.note(ended),
        write: () => reporting.write(),
      };
    },
  };
}
