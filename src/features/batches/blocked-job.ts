import type { JobDefinition } from '../../core/job/definition.ts';
import type { NewJob } from '../../core/job/new-job.ts';

/**
 * A job that begins once so many batches have ended. Until then it is due at its deadline alone: the claim
 * finds it late, and ends it.
 */
export function blockedJob(job: NewJob, blockers: number, { deadlineMs = 0 }: JobDefinition): NewJob {
  return blockers === 0 ? job : { ...job, blockers, runAtMs: null, delayMs: deadlineMs };
}
