import type { JobDefinition } from '../../core/job/definition.ts';
import type { PlainEnqueueOptions } from '../../core/job/enqueue-options.ts';
import type { NewJob } from '../../core/job/new-job.ts';

/**
 * A job that begins once this many batches have ended. Until then it is due at its deadline alone: the
 * claim finds it late, and ends it.
 */
export function blockedJob(job: NewJob, blockers: number, { deadlineMs = 0 }: JobDefinition): NewJob {
  return blockers === 0 ? job : { ...job, blockers, runAtMs: null, delayMs: deadlineMs };
}

/** For callers without TypeScript, too. @throws TypeError for a time: the end of others is when it begins */
export function checkUntimed(what: string, entry: Pick<PlainEnqueueOptions, 'delayMs' | 'runAt'>): void {
  if (entry.delayMs === undefined && entry.runAt === undefined) return;
  throw new TypeError(`${what}there is no delayMs or runAt; let its handler sleep`);
}
