import { JobTimeoutError, WorkerLostError } from '../../errors.ts';
import type { JobDefinition, OutputInput } from '../../job/definition.ts';
import { isCancel, isFail, isSnooze, type Outcome } from '../../job/outcome.ts';
import { outputToStore, payloadFromStore } from '../../job/validate.ts';
import type { Attempt } from './attempt.ts';

/**
 * Runs one attempt and returns how it ended; throws nothing and writes nothing. The payload's schema, the
 * handler and the output's schema share the `timeoutMs`, and a stop waits for none of them for long.
 */
export async function executeJob(attempt: Attempt): Promise<Outcome> {
  const { job, handler } = attempt;
  // Asked for before it began: while an earlier attempt ran, whose worker died or gave it back.
  if (attempt.unwanted) return { type: 'interrupted' };
  if (job.attempt > job.maxAttempts) {
    // Every attempt was claimed and none was settled: whatever the job does, it kills its worker.
    return { type: 'failed', error: new WorkerLostError(job.kind, job.id, job.maxAttempts) };
  }
  attempt.begin();
  const { timeoutMs } = handler.job;
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => attempt.end(new JobTimeoutError(job.kind, job.id, timeoutMs)), timeoutMs);
  try {
    // Without a schema there is nothing to wait for.
    const payload =
      handler.job.payload === undefined
        ? undefined
        : await attempt.until(payloadFromStore(handler.job, job.payload));
    const returned = await attempt.run(payload);
    return outcomeWithoutOutput(attempt, returned) ?? (await completed(attempt, returned));
  } catch (error) {
    if (attempt.interrupted) return { type: 'interrupted' };
    // A handler that heeds its signal throws an AbortError of its own; the reason says more.
    return { type: 'failed', error: attempt.reason ?? error };
  } finally {
    if (timer !== undefined) clearTimeout(timer);
    attempt.close();
  }
}

/** The outcome, unless it is a completion whose output must be made ready for the database first. */
function outcomeWithoutOutput(attempt: Attempt, returned: unknown): Outcome | undefined {
  if (isSnooze(returned)) return { type: 'snoozed', delayMs: returned.delayMs };
  if (isCancel(returned)) return { type: 'cancelled', reason: returned.reason };
  if (isFail(returned)) return { type: 'failed', error: returned.error };
  // The job's end is in the transaction already, with the output that complete() was given.
  if (attempt.completeRan) return { type: 'committed' };
  const nothing = returned === undefined && attempt.handler.job.output === undefined;
  return nothing ? { type: 'completed', output: 'null' } : undefined;
}

async function completed(attempt: Attempt, returned: unknown): Promise<Outcome> {
  // What an output schema takes is checked by it; without one, anything that JSON can hold is an output.
  const output = outputToStore(attempt.handler.job, returned as OutputInput<JobDefinition>);
  return { type: 'completed', output: await attempt.until(output) };
}
