import { type Begun, beginFreeJobs, beginJobs, type OnDisk } from '../../queries/begin/begin-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import type { HeldJob, Holder } from '../../sql/fence.ts';
import { isAboutLocks } from '../base/refusal.ts';

export interface RecordOptions {
  readonly runner: Runner;
  readonly tables: QueueTables;
  readonly holder: Holder;
}

/**
 * Records that jobs are about to begin. A locked row costs the others one statement more.
 * @param stopping once aborted, the jobs count as locked after a lock: all are given back
 * @param onDisk when the record is safe from a crash of the server
 * @throws what the database says
 */
export async function recordBeginnings(
  { runner, tables, holder }: RecordOptions,
  jobs: readonly HeldJob[],
  stopping: AbortSignal,
  onDisk: OnDisk = 'now',
): Promise<Begun> {
  try {
    const begun = await beginJobs(runner, tables, holder, jobs, { locks: 'briefly', onDisk });
    return { begun, locked: new Set() };
  } catch (error) {
    if (!isAboutLocks(error)) throw error;
    // All are given back, in one statement.
    if (stopping.aborted) return { begun: new Set(), locked: new Set(jobs.map(({ id }) => id)) };
    return await beginFreeJobs(runner, tables, holder, jobs);
  }
}
