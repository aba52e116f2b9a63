import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import { Pruning } from '../../../core/worker/upkeep/prune.ts';
import { pruneMetrics } from '../queries/prune-metrics.ts';
import { Folding } from './folding.ts';
import { Reporting, type ReportingOptions } from './reporting.ts';

const FIRST_PRUNE_WITHIN_MS = 60_000;

/** What a worker does for metrics. */
export interface MetricsParts {
  readonly reporting: Reporting;
  readonly background: readonly BackgroundPart[];
}

/** The parts of a worker whose queue has metrics. */
export function metricsPartsOf(options: ReportingOptions): MetricsParts {
  const { db, known, events } = options;
  const reporting = new Reporting(options);
  const prune = (limit: number) => pruneMetrics(db, known, limit);
  const pruning = new Pruning({
    prune,
    what: 'metrics',
    firstWithinMs: FIRST_PRUNE_WITHIN_MS,
    events,
  });
  return { reporting, background: [reporting, new Folding({ db, known, events }), pruning] };
}
