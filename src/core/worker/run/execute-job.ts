import { JobDeadlineError, JobTimeoutError, WorkerLostError } from '../../../errors.ts';
import type { JobDefinition, OutputInput } from '../../job/definition.ts';
import { MAX_TIMER_MS } from '../../job/limits.ts';
import { isCancel, isFail, isSnooze, isWait, type Outcome } from '../../job/outcome.ts';
import { outputToStore, payloadFromStore } from '../../job/validate.ts';
import { decodeErrorOf } from '../../sql/claimed-job.ts';
import { isPromise } from '../base/is-promise.ts';
import type { Attempt } from './attempt.ts';

/**
 * Runs one attempt and returns how it ended; throws nothing and writes nothing. The payload's schema, the
 * handler and the output's schema share the `timeoutMs`, and a stop waits for none of them for long.
 *
 * What is there at once is returned at once, and makes no promise: each one of a job that waits outlives its
 * generation in the garbage collector.
 */
export function executeJob(attempt: Attempt): Outcome | PromiseLike<Outcome> {
  const { job } = attempt;
  // Asked for before it began, perhaps while an earlier attempt ran; or it was lost.
  if (attempt.unwanted || attempt.isLeft) return { type: 'interrupted' };
  if (job.attempt > job.maxAttempts) {
    // Every attempt was claimed and none was settled: whatever the job does, it kills its worker.
    return { type: 'failed', error: new WorkerLostError(job.kind, job.id, job.maxAttempts) };
  }
  const { added } = attempt.environment;
  const { blockers = 0 } = job;
  if (blockers <= 0 || added?.isBlocked === undefined) return runJob(attempt);
  return added.isBlocked(attempt).then(
    (isBlocked) => (isBlocked ? blocked(attempt) : unblocked(attempt)),
    (error) => failureOf(attempt, error),
  );
}

/** Of a job that must not begin: it is late, or was claimed before its time. */
function blocked(attempt: Attempt): Outcome {
  if (isLate(attempt)) return { type: 'failed', error: attempt.deadlineError };
  return { type: 'waiting', delayMs: null };
}

/** Of a job that waits for several things, one of which has come. */
function unblocked(attempt: Attempt): Outcome | PromiseLike<Outcome> {
  // While it was asked for.
  if (attempt.unwanted || attempt.interrupted) return { type: 'interrupted' };
  return runJob(attempt);
}

function isLate({ untilDeadlineMs }: Attempt): boolean {
  return untilDeadlineMs !== undefined && untilDeadlineMs <= 0;
}

function runJob(attempt: Attempt): Outcome | PromiseLike<Outcome> {
  const late = isLate(attempt);
  // A handler with an added context may have work to take back, so it is called although it is late.
  const hasAddedContext = attempt.environment.added !== undefined && attempt.handler.batch === undefined;
  if (late && !hasAddedContext) return { type: 'failed', error: attempt.deadlineError };
  const undecoded = decodeErrorOf(attempt.job);
  if (undecoded !== undefined) return { type: 'failed', error: undecoded.error };
  attempt.begin();
  if (late) attempt.expire();
  // Outside of the context of the handler, as all that goes on after it.
  const timers = timersOf(attempt);
  return attempt.inContext(() => handled(attempt, timers));
}

type Timers = readonly ReturnType<typeof setTimeout>[] | undefined;

/** What ends an attempt, or tells its handler to end; most have none. */
function timersOf(attempt: Attempt): Timers {
  const { job, handler, untilDeadlineMs } = attempt;
  const { timeoutMs } = handler.job;
  if (timeoutMs === undefined && untilDeadlineMs === undefined) return undefined;
  const timers: ReturnType<typeof setTimeout>[] = [];
  if (timeoutMs !== undefined) {
    const end = () => attempt.end(new JobTimeoutError(job.kind, job.id, timeoutMs));
    timers.push(setTimeout(end, timeoutMs));
  }
  // No attempt lasts as long as the longest timer.
  if (untilDeadlineMs !== undefined && untilDeadlineMs > 0 && untilDeadlineMs <= MAX_TIMER_MS) {
    timers.push(setTimeout(() => attempt.expire(), untilDeadlineMs));
  }
  return timers;
}

function handled(attempt: Attempt, timers: Timers): Outcome | PromiseLike<Outcome> {
  const { handler } = attempt;
  try {
    const payload = attempt.until(payloadFromStore(handler.job, attempt.payload));
    const returned = isPromise(payload)
      ? payload.then((payload) => attempt.run(payload))
      : attempt.run(payload);
    if (!isPromise(returned)) return over(attempt, outcomeAfter(attempt, returned), timers);
    return returned.then(
      (returned) => over(attempt, outcomeAfter(attempt, returned), timers),
      (error) => over(attempt, failureAfter(attempt, error), timers),
    );
  } catch (error) {
    return over(attempt, failureAfter(attempt, error), timers);
  }
}

/** The outcome of a handler that has returned, after what it has left under way. */
function outcomeAfter(attempt: Attempt, returned: unknown): Outcome | PromiseLike<Outcome> {
  const left = attempt.leftUnderWay();
  if (left === undefined) return outcomeOf(attempt, returned);
  return left.then(
    () => outcomeOf(attempt, returned),
    (error) => failureOf(attempt, error),
  );
}

/** The same of one that has thrown: whatever becomes of what it has left, this is why it has failed. */
function failureAfter(attempt: Attempt, error: unknown): Outcome | PromiseLike<Outcome> {
  const failure = failureOf(attempt, error);
  return (
    attempt.leftUnderWay()?.then(
      () => failure,
      () => failure,
    ) ?? failure
  );
}

/** The attempt's end is decided with its outcome. */
function over(
  attempt: Attempt,
  outcome: Outcome | PromiseLike<Outcome>,
  timers: Timers,
): Outcome | PromiseLike<Outcome> {
  if (isPromise(outcome)) return outcome.then((outcome) => over(attempt, outcome, timers));
  if (timers !== undefined) for (const timer of timers) clearTimeout(timer);
  attempt.close();
  // A job that is too old cannot wait: it would be due at once, again and again.
  const { reason } = attempt;
  const waits = outcome.type === 'snoozed' || outcome.type === 'waiting';
  if (waits && reason instanceof JobDeadlineError) return { type: 'failed', error: reason };
  return outcome;
}

function failureOf(attempt: Attempt, error: unknown): Outcome {
  if (attempt.interrupted) return { type: 'interrupted' };
  const { waitsMs, isSurrounded } = attempt;
  // What is around a handler that waits may fail all the same.
  if (waitsMs !== undefined && !isSurrounded) return { type: 'waiting', delayMs: waitsMs };
  // A handler that obeys its signal throws its own AbortError; the reason says more.
  return { type: 'failed', error: attempt.reason ?? error };
}

/** Throws nothing: anything can be returned, even a proxy that throws when it is asked what it is. */
function outcomeOf(attempt: Attempt, returned: unknown): Outcome | PromiseLike<Outcome> {
  attempt.noteReturned();
  // Left behind, and what was around it has ended.
  const { waitsMs } = attempt;
  if (waitsMs !== undefined && isWait(returned)) return { type: 'waiting', delayMs: waitsMs };
  try {
    return outcomeWithoutOutput(attempt, returned) ?? completed(attempt, returned);
  } catch (error) {
    return failureOf(attempt, error);
  }
}

/** The outcome, unless it is a completion whose output must be made ready for the database first. */
function outcomeWithoutOutput(attempt: Attempt, returned: unknown): Outcome | undefined {
  if (isSnooze(returned)) return { type: 'snoozed', delayMs: returned.delayMs };
  if (isCancel(returned)) return { type: 'cancelled', reason: returned.reason };
  if (isFail(returned)) return failureOf(attempt, returned.error);
  // The job's end is in the transaction already, with the output that complete() was given.
  if (attempt.completeRan) return { type: 'committed' };
  const nothing = returned === undefined && attempt.handler.job.output === undefined;
  return nothing ? { type: 'completed', output: 'null' } : undefined;
}

async function completed(attempt: Attempt, returned: unknown): Promise<Outcome> {
  try {
    // What an output schema takes is checked by it; without one, anything that JSON can hold is an output.
    const output = outputToStore(attempt.handler.job, returned as OutputInput<JobDefinition>);
    return { type: 'completed', output: await attempt.until(output) };
  } catch (error) {
    return failureOf(attempt, error);
  }
}
