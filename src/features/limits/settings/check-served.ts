import type { JobDefinition } from '../../../core/job/definition.ts';
import type { Handler } from '../../../core/worker/run/handler.ts';
import type { ServedQueue } from '../../../core/worker/served-queues.ts';
import { type DeclaredQueueLimits, heedsConcurrency, isGrouped } from './limit-settings.ts';

/** @throws TypeError where a worker is told to serve a queue with limits as none can */
export function checkServed(
  caller: string,
  queue: string,
  limits: DeclaredQueueLimits,
  { agingMs }: ServedQueue,
  handlers: readonly Handler<never>[],
): void {
  if (agingMs !== undefined) {
    const what = `${caller}: queues['${queue}'].aging:`;
    if (Object.keys(limits.kinds ?? {}).length > 0) {
      throw new TypeError(`${what} kinds with limits are claimed separately, so aging does not apply`);
    }
    if (isGrouped(limits)) {
      throw new TypeError(`${what} its jobs are in groups, which take turns, so aging does not apply`);
    }
  }
  for (const { job, batch } of handlers) if (batch !== undefined) checkBatches(job, queue, limits);
}

/** An enqueue may put a job into any queue, and a worker claims its kinds in all that it serves. */
function checkBatches({ kind, queue: own }: JobDefinition, queue: string, limits: DeclaredQueueLimits): void {
  const apart = queue === own ? '' : `, which this worker serves: serve it by another, without this handler`;
  if (limits.groups?.serial !== undefined) {
    throw new TypeError(
      `handleBatch('${kind}'): the jobs of a group run one after the other in ` +
        (apart === '' ? `its queue '${queue}'` : `the queue '${queue}'${apart}`),
    );
  }
  if (heedsConcurrency(limits) || heedsConcurrency(limits, kind)) {
    throw new TypeError(
      `handleBatch('${kind}'): a limit of the concurrency counts single jobs, not batches; ` +
        (apart === ''
          ? `limit the groups of its queue '${queue}', or give it a rate`
          : `the queue '${queue}' has one, or may get one at run time${apart}`),
    );
  }
}
