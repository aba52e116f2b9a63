import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { silentEnds } from '../../sql/silent-ends.ts';

/**
 * The most that have begun and are not called yet, where there are fewer slots and their handlers are over at
 * once: a crash spends these attempts. Each group is a round trip, so with fewer the worker waits for it.
 */
export const MAX_BEGUN = 100;
/** The most that one statement records as begun, and the most that begin together with one job. */
export const MAX_RECORDED = 2_000;
/** Last attempts after a death go together, one for every this many of their kind that have ended. */
const SURVIVORS_EACH = 16;

/** Whether a crash must not spend the attempt before it begins. The claim says the same in SQL. */
export function isPrecious(job: ClaimedJob): boolean {
  return job.attempt === job.maxAttempts || silentEnds(job) > 0;
}

/** An attempt whose job may be the one that killed a worker. */
export function isAfterDeath(job: ClaimedJob): boolean {
  return silentEnds(job) > 0;
}

/** A last attempt whose job may be the one that killed a worker: nothing must be lost with it. */
export function isLastAfterDeath(job: ClaimedJob): boolean {
  return job.attempt === job.maxAttempts && silentEnds(job) > 0;
}

/**
 * How many may be recorded together with this job at most, itself included. Each silent end divides the group
 * by eight, so a job that kills its worker is found in a few crashes, and costs the others no more attempts
 * than that. A last attempt after such an end stands alone until enough others like it have ended well: the
 * job that kills was running, so it is among the first to be claimed again.
 * @param survivors how many last attempts after a death of its kind have ended in this process
 */
export function mostTogether(job: ClaimedJob, survivors: number): number {
  const deaths = silentEnds(job);
  if (deaths === 0) return MAX_RECORDED;
  const most = Math.floor(MAX_RECORDED / 8 ** (deaths - 1));
  const proven = isLastAfterDeath(job) ? Math.floor(survivors / SURVIVORS_EACH) : MAX_RECORDED;
  return Math.max(1, Math.min(most, proven));
}

/**
 * How many jobs of a batch handler may be in a batch with this one, itself included, and only others with the
 * same number. A death spends an attempt of each job in the batch, so each silent end divides the batch by
 * eight until the job that kills its worker is alone. As in {@link mostTogether}, a last attempt after such
 * an end stands alone until enough others have ended well.
 */
export function mostInBatch(job: ClaimedJob, maxSize: number, survivors: number): number {
  const most = Math.floor(maxSize / 8 ** silentEnds(job));
  const proven = isLastAfterDeath(job) ? Math.floor(survivors / SURVIVORS_EACH) : maxSize;
  return Math.max(1, Math.min(most, proven));
}
