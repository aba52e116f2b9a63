import { JobCancelledError, NonRetryableError } from '../../../errors.ts';

/**
 * Whether an error ends the job for good, so that a handler may call `step.undoAll`: a `NonRetryableError`, a
 * `StepFailedError`, a `ChildFailedError`, or a `JobCancelledError`. After others there may be another
 * attempt, which goes on. It does not know of the job's last attempt: give `attempts` to the steps.
 */
export function isFinal(error: unknown): boolean {
  return error instanceof NonRetryableError || error instanceof JobCancelledError;
}
