import { checkDate, checkId, checkInteger, checkObject, checkText, MAX_NAME_BYTES } from '../job/limits.ts';
import { isCitus } from '../queries/is-citus.ts';
import {
  type Redrive,
  type RedriveResult,
  redriveJobs as redriveInOne,
  redriveQueueByQueue,
} from '../queries/redrive-jobs.ts';
import type { QueueTables } from '../schema/index.ts';
import type { Executor } from '../sql/executor.ts';
import { ANY_QUEUE, type WakeUps } from './wake-ups.ts';

/** Which discarded jobs {@link Queue.redrive} puts back. An empty filter means all of them. */
export interface RedriveFilter {
  kind?: string | undefined;
  queue?: string | undefined;
  /** Only jobs that were discarded at this time or later. */
  finishedAfter?: Date | undefined;
  /** Only jobs that were discarded before this time. */
  finishedBefore?: Date | undefined;
  /** The most jobs to put back, the oldest ids first. @default no limit */
  limit?: number | undefined;
}

/**
 * Puts discarded jobs back, and notifies their workers as `wakeUps` allows.
 *
 * @throws RangeError | TypeError before anything is sent
 */
export async function redrive(
  db: Executor,
  tables: QueueTables,
  which: number | RedriveFilter,
  wakeUps: WakeUps | undefined,
): Promise<RedriveResult> {
  const filter: Redrive = typeof which === 'number' ? { id: checkId('redrive', which) } : checkFilter(which);
  const everywhere = filter.queue === undefined && (await isCitus(db, tables));
  const redriveJobs = everywhere ? redriveQueueByQueue : redriveInOne;
  if (wakeUps === undefined) return await redriveJobs(db, tables, filter);
  const key = typeof which === 'number' ? ANY_QUEUE : (which.queue ?? ANY_QUEUE);
  const { redriven, duplicates } = await wakeUps.allow(db, [key], async (wakeUp) => {
    const answer = await redriveJobs(db, tables, filter, wakeUp);
    return { ...answer, woken: answer.redriven > 0 && wakeUp !== undefined ? [key] : [] };
  });
  return { redriven, duplicates };
}

function checkFilter(filter: RedriveFilter): RedriveFilter {
  checkObject('redrive: its filter', filter);
  const { kind, queue, limit, finishedAfter, finishedBefore } = filter;
  if (kind !== undefined) checkText('redrive: kind', kind, MAX_NAME_BYTES);
  if (queue !== undefined) checkText('redrive: queue', queue, MAX_NAME_BYTES);
  if (finishedAfter !== undefined) checkDate('redrive: finishedAfter', finishedAfter);
  if (finishedBefore !== undefined) checkDate('redrive: finishedBefore', finishedBefore);
  if (limit !== undefined) checkInteger('redrive: limit', limit, 1, Number.MAX_SAFE_INTEGER);
  return filter;
}
