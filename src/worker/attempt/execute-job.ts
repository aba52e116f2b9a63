import { JobTimeoutError, QueueError, WorkerLostError } from '../../errors.ts';
import type { JobDefinition, OutputInput } from '../../job/definition.ts';
import { isCancel, isSnooze, type Outcome } from '../../job/outcome.ts';
import { outputToStore, payloadFromStore } from '../../job/validate.ts';
import type { Attempt } from './attempt.ts';

/**
 * Runs one attempt to its end and says how it ended. Nothing is thrown past this function, and nothing is written by it: the
 * outcome is a value.
 */
export async function executeJob(attempt: Attempt): Promise<Outcome> {
  // Asked for before it began: while an earlier attempt ran, whose worker died or gave it back.
  const unwanted = cancelledBy(attempt);
  if (unwanted !== undefined) return unwanted;
  const { job, handler } = attempt;
  if (job.attempt > job.maxAttempts) {
    // Every attempt was claimed and none was settled: whatever the job does, it kills its worker.
    return { type: 'failed', error: new WorkerLostError(job.kind, job.id, job.maxAttempts) };
  }
  const { timeoutMs } = handler.job;
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => attempt.end(new JobTimeoutError(job.kind, job.id, timeoutMs)), timeoutMs);
  try {
    // Without a schema there is nothing to wait for.
    const payload =
      handler.job.payload === undefined ? undefined : await payloadFromStore(handler.job, job.payload);
    const returned = await attempt.run(payload);
    const outcome = outcomeWithoutOutput(attempt, returned) ?? (await completed(handler.job, returned));
    // What is not wanted is not put off either. What is done is done.
    return (outcome.type === 'snoozed' ? cancelledBy(attempt) : undefined) ?? outcome;
  } catch (error) {
    const cancelled = cancelledBy(attempt);
    if (cancelled !== undefined) return cancelled;
    if (attempt.interrupted) return { type: 'interrupted' };
    // A handler that heeds its signal throws an AbortError of its own; the reason says more.
    return { type: 'failed', error: attempt.reason ?? error };
  } finally {
    if (timer !== undefined) clearTimeout(timer);
    attempt.close();
  }
}

/** The outcome of an attempt that did not complete its job, when somebody has asked for the job's end. */
function cancelledBy({ cancelReason }: Attempt): Outcome | undefined {
  return cancelReason === undefined ? undefined : { type: 'cancelled', reason: cancelReason };
}

/** The outcome, unless it is a completion whose output must be made ready for the database first. */
function outcomeWithoutOutput(attempt: Attempt, returned: unknown): Outcome | undefined {
  if (isSnooze(returned)) return { type: 'snoozed', delayMs: returned.delayMs };
  if (isCancel(returned)) return { type: 'cancelled', reason: returned.reason };
  // The job's end is in the transaction already, with the output that complete() was given.
  const nothing = returned === undefined && attempt.handler.job.output === undefined;
  if (attempt.completeRan || nothing) return { type: 'completed', output: 'null' };
  return undefined;
}

async function completed(job: JobDefinition, returned: unknown): Promise<Outcome> {
  // What an output schema takes is checked by it; without one, anything that JSON can hold is an output.
  return { type: 'completed', output: await outputToStore(job, returned as OutputInput<JobDefinition>) };
}

/**
 * The outcome of an attempt whose handler has called `complete(tx)` and returned, should the job still be held: then that
 * transaction rolled back, its writes are lost, and the job has not been done, however the handler returned.
 */
export function outcomeIfStillHeld(attempt: Attempt, outcome: Outcome): Outcome {
  if (!attempt.completeRan || outcome.type !== 'completed') return outcome;
  const cancelled = cancelledBy(attempt);
  if (cancelled !== undefined) return cancelled;
  const error = new QueueError('The transaction in which the handler called complete(tx) did not commit');
  return { type: 'failed', error };
}
