import {
  type Begun,
  beginByKeptPlan,
  beginFreeJobs,
  beginJobs,
  type OnDisk,
} from '../../queries/begin/begin-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { HeldJob, Holder } from '../../sql/fence.ts';
import { isDistributed } from '../../sql/statement-context.ts';
import { sleep } from '../../time/sleep.ts';
import { isAboutLocks } from '../base/refusal.ts';
import type { KeptPlans } from '../statements/kept-plans.ts';
import type { WorkerRunner } from '../statements/statements.ts';

export interface RecordOptions {
  readonly runner: WorkerRunner;
  readonly tables: QueueTables;
  readonly holder: Holder;
}

export interface RecordManner {
  /** When the record is safe from a crash of the server. */
  readonly onDisk: OnDisk;
  /** Where many groups follow each other. */
  readonly keptPlans: KeptPlans;
}

/** As long as a brief wait is elsewhere. */
const MAX_TURNS = 5;
const TURN_MS = 25;

/**
 * Records that jobs are about to begin. A locked row costs the others one statement more, on Citus none.
 * @param stopping once aborted, the jobs count as locked after a lock: all are given back
 * @param manner without it, the record is on the server's disk at once
 * @throws what the database says
 */
export async function recordBeginnings(
  options: RecordOptions,
  jobs: readonly HeldJob[],
  stopping: AbortSignal,
  manner?: RecordManner,
): Promise<Begun> {
  const { runner, tables, holder } = options;
  if (isDistributed(tables)) return await beginInTurns(options, jobs, stopping);
  try {
    return { begun: await begin(options, jobs, manner), locked: new Set() };
  } catch (error) {
    if (!isAboutLocks(error)) throw error;
    // All are given back, in one statement.
    if (stopping.aborted) return { begun: new Set(), locked: new Set(jobs.map(({ id }) => id)) };
    return await beginFreeJobs(runner, tables, holder, jobs);
  }
}

/**
 * The same on Citus, where no wait for a lock can be made brief. A claim of another worker locks for a moment
 * what this one has just claimed, so locked rows are tried again before they count as locked.
 */
async function beginInTurns(
  { runner, tables, holder }: RecordOptions,
  jobs: readonly HeldJob[],
  stopping: AbortSignal,
): Promise<Begun> {
  const begun = new Set<number>();
  let left = jobs;
  for (let turn = 1; ; turn++) {
    const free = await beginFreeJobs(runner, tables, holder, left);
    for (const id of free.begun) begun.add(id);
    left = left.filter(({ id }) => free.locked.has(id));
    if (left.length === 0 || turn === MAX_TURNS || stopping.aborted) {
      return { begun, locked: new Set(left.map(({ id }) => id)) };
    }
    await sleep(TURN_MS, stopping);
  }
}

async function begin(
  { runner, tables, holder }: RecordOptions,
  jobs: readonly HeldJob[],
  manner: RecordManner | undefined,
): Promise<ReadonlySet<number>> {
  const options = { locks: 'briefly', onDisk: manner?.onDisk ?? 'now' } as const;
  const anew = () => beginJobs(runner, tables, holder, jobs, options);
  if (manner?.onDisk !== 'soon') return await anew();
  return await manner.keptPlans.send(
    (ifTableIs) => beginByKeptPlan(runner, tables, holder, jobs, { ...options, ifTableIs }),
    anew,
  );
}
