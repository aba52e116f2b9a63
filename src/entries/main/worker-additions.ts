import { namesOf } from '../../core/job/known-options.ts';
import { checkBoolean } from '../../core/job/limits.ts';
import type { Database } from '../../core/sql/executor.ts';
import type { WorkerAdditions } from '../../core/worker/options.ts';
import type { ControlTables } from '../../features/control/index.ts';
import { keysInWorker } from '../../features/keys/worker/keys-in-worker.ts';
import type { MetricsTables } from '../../features/metrics/schema/index.ts';
import { metricsInWorker } from '../../features/metrics/worker/metrics-in-worker.ts';
import type { Schedules } from '../../features/schedules/schedules.ts';
import { checkDeclared, schedulesInWorker } from '../../features/schedules/worker/schedules-in-worker.ts';
import type { WorkerOptions } from './worker-options.ts';

/** The features of a worker that its queue and its own options ask for. Only a worker loads their code. */
export const additions: WorkerAdditions = {
  options: namesOf<Pick<WorkerOptions<unknown>, 'metrics' | 'schedules'>>({ metrics: true, schedules: true }),
  of(caller, { queue, metrics = true, schedules: declared = [] }: WorkerOptions<Database>) {
    // `createQueue` has put them there, or nothing.
    const schedules = queue.schedules as Schedules | undefined;
    const queueKeys = queue.keys as ControlTables['queueKeys'] | undefined;
    const queueMetrics = queue.metrics as MetricsTables['queueMetrics'] | undefined;
    const writesMetrics = checkBoolean(`${caller}: metrics`, metrics);
    checkDeclared(caller, schedules, declared);
    return [
      ...(schedules === undefined ? [] : [schedulesInWorker(caller, schedules, declared)]),
      ...(queueKeys === undefined ? [] : [keysInWorker(queueKeys)]),
      ...(queueMetrics === undefined || !writesMetrics ? [] : [metricsInWorker(queueMetrics)]),
    ];
  },
};
