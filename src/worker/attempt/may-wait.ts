import type { ClaimedJob } from '../../queries/claim-jobs.ts';

/**
 * Whether a job may be claimed ahead of its slot. A crash spends the attempt of all that its worker holds, begun or not. So a job
 * on its last attempt must not wait, and neither must one whose last attempt ended without a word: among those may be
 * the one that kills its workers, and the others would be discarded for standing behind it.
 */
export function mayWait({ attempt, maxAttempts, errors }: ClaimedJob): boolean {
  const lastRecorded = errors.at(-1)?.attempt ?? 0;
  return attempt < maxAttempts && lastRecorded >= attempt - 1;
}
