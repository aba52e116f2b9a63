import type { Transition } from '../../job/transition.ts';
import type { ClaimedJob } from '../../queries/claim-jobs.ts';
import type { EndResult } from './announce.ts';
import type { WorkerEmitter } from './events.ts';
import type { Fates } from './fates.ts';
import type { Settler } from './settle.ts';

export interface AfterCompleteOptions {
  readonly settler: Settler;
  readonly fates: Fates;
  readonly events: WorkerEmitter;
}

/**
 * After `complete(tx)` only the database knows whether it has committed: the handler may have swallowed a
 * rollback, or lost the answer to COMMIT. While it is open the job looks held, and its row is locked.
 */
export async function writeUnlessCompleted(
  options: AfterCompleteOptions,
  job: ClaimedJob,
  transition: Transition,
): Promise<EndResult> {
  if (await handlerHasEnded(options, job)) return 'completed by handler';
  return await writeIfHeld(options, job, transition);
}

/** For a job that the handler had not ended a moment ago. */
export async function writeIfHeld(
  options: AfterCompleteOptions,
  job: ClaimedJob,
  transition: Transition,
): Promise<EndResult> {
  const { id, fence } = job;
  const settled = await options.settler.settleAlone({ id, fence, transition });
  return settled === 'lost' && (await handlerHasEnded(options, job)) ? 'completed by handler' : settled;
}

/** Whether the handler's own transaction has ended the job. Not known is no. */
export async function handlerHasEnded(
  { events, settler, fates }: AfterCompleteOptions,
  job: ClaimedJob,
): Promise<boolean> {
  if (settler.hasGivenUp) return false;
  try {
    const fate = await fates.of(job);
    // A completion that keeps no result leaves nothing. A cancel by force ends it under the same fence.
    return fate === undefined || (fate.state === 'completed' && fate.fence === job.fence);
  } catch (error) {
    events.emit('error', { error, during: `asking what became of job ${job.id} of '${job.queue}'` });
    return false;
  }
}
