import type { Transition } from '../../job/transition.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { Doubling } from '../../time/doubling.ts';
import type { Retries } from '../../time/retries.ts';
import type { WorkerEmitter } from '../base/events.ts';
import { isAboutTheServer } from '../base/refusal.ts';
import type { EndResult } from './announce.ts';
import type { Fates } from './fates.ts';
import type { HandlerHolds } from './handler-holds.ts';
import type { Settler } from './settle.ts';

export interface AfterCompleteOptions {
  readonly settler: Settler;
  readonly fates: Fates;
  /** `undefined` where jobs are in no groups. */
  readonly handlerHolds?: HandlerHolds | undefined;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
  /** Aborted when nothing is to be sent any more. */
  readonly giveUp: AbortSignal;
  /** Aborted when what the database refuses is to be tried no more. */
  readonly leave: AbortSignal;
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
  if (settled !== 'lost') return settled;
  const ended = await untilKnown(options, job);
  // Without an answer it is neither completed nor lost.
  if (ended === undefined) return 'abandoned';
  return ended ? 'completed by handler' : 'lost';
}

/**
 * Whether the handler's own transaction has ended the job. Not known is no: then it is to be written, which
 * has no effect on a job that has ended.
 */
export async function handlerHasEnded(options: AfterCompleteOptions, job: ClaimedJob): Promise<boolean> {
  if (options.giveUp.aborted) return false;
  try {
    return await hasEnded(options, job);
  } catch (error) {
    noteUnanswered(options, job, error);
    return false;
  }
}

/** The same, asked until the database answers; `undefined` when it did not before the end. */
async function untilKnown(options: AfterCompleteOptions, job: ClaimedJob): Promise<boolean | undefined> {
  const { retries, giveUp, leave } = options;
  for (const delays = new Doubling(); !giveUp.aborted; ) {
    try {
      return await hasEnded(options, job);
    } catch (error) {
      // Once: during an outage each job that has ended would say so again and again.
      if (delays.isFirst) noteUnanswered(options, job, error);
      if (leave.aborted && !isAboutTheServer(error)) return undefined;
      await retries.sleep(delays.next(), giveUp);
    }
  }
  return undefined;
}

async function hasEnded({ fates }: AfterCompleteOptions, job: ClaimedJob): Promise<boolean> {
  const fate = await fates.of(job);
  // A completion that keeps no result leaves nothing. A cancel by force ends it under the same fence.
  return fate === undefined || (fate.state === 'completed' && fate.fence === job.fence);
}

function noteUnanswered({ events }: AfterCompleteOptions, job: ClaimedJob, error: unknown): void {
  events.emit('error', { error, during: `asking what became of job ${job.id} of '${job.queue}'` });
}
