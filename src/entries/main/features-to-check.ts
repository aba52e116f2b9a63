import type { FeatureToCheck } from '../../core/queue/check/feature-to-check.ts';
import type { Queue } from '../../core/queue/queue.ts';
import { CONTROL_ENTRY } from '../../features/control/control-entry.ts';
import { METRICS_ENTRY } from '../../features/metrics/sql/metrics-entry.ts';

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
    keys && {
      tables: [keys],
      without: 'enqueue with throttle or unique: { forMs } fails',
      entry: CONTROL_ENTRY,
      factory: 'createControlTables',
    },
    workflows?.toCheck,
    metrics && {
      tables: [metrics],
      without: 'workers of this queue do not start',
      entry: METRICS_ENTRY,
      factory: 'createMetricsTables',
    },
  ];
  return features.filter((feature) => feature !== undefined);
}
