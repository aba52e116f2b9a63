import type { FeatureToCheck } from '../../core/queue/check/feature-to-check.ts';
import type { Queue } from '../../core/queue/queue.ts';
import { missingKeys } from '../../features/keys/missing-keys.ts';
import { missingMetrics } from '../../features/metrics/missing-metrics.ts';

/** Of these, all that is used here: their types would bring those of the workers along. */
interface Checked {
  readonly toCheck: FeatureToCheck;
}

/** The features of a queue that have tables. Loaded by the first check. */
export function featuresToCheck(queue: Queue): readonly FeatureToCheck[] {
  const { keys, metrics } = queue;
  // `createQueue` has put them there, or nothing.
  const limits = queue.limits as Checked | undefined;
  const schedules = queue.schedules as Checked | undefined;
  const workflows = queue.workflows as Checked | undefined;
  const features = [
    schedules?.toCheck,
    limits?.toCheck,
    keys && { tables: [keys], missing: () => missingKeys(keys) },
    workflows?.toCheck,
    metrics && { tables: [metrics], missing: () => missingMetrics(metrics) },
  ];
  return features.filter((feature) => feature !== undefined);
}
