import { checkOptions, namesOf } from '../job/known-options.ts';
import { checkDate, checkId, checkInteger, checkText, MAX_NAME_BYTES } from '../job/limits.ts';
import { shown } from '../job/shown.ts';
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

/**
 * Which discarded jobs {@link Queue.redrive} puts back: those that fit all that is given, or `all`. No value
 * may be `undefined`: a variable that was never set must not mean every job.
 */
export interface RedriveFilter {
  /** Every discarded job, without `kind`, `queue` and times. */
  all?: true;
  kind?: string;
  queue?: string;
  /** Only jobs that were discarded at this time or later. */
  finishedAfter?: Date;
  /** Only jobs that were discarded before this time. */
  finishedBefore?: Date;
  /** The most jobs to put back, the oldest ids first. @default no limit */
  limit?: number;
}

const FILTER = namesOf<RedriveFilter>({
  all: true,
  kind: true,
  queue: true,
  finishedAfter: true,
  finishedBefore: true,
  limit: true,
});
const WHICH = ['kind', 'queue', 'finishedAfter', 'finishedBefore'] as const;

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

function checkFilter(filter: RedriveFilter): Redrive {
  checkOptions('redrive: its filter', filter, FILTER);
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined)
      throw new TypeError(`redrive: ${name} is undefined: leave it out, or give a value`);
  }
  const { all, ...which } = filter;
  const given = WHICH.filter((name) => which[name] !== undefined);
  if (all !== undefined && all !== true) throw new TypeError(`redrive: all must be true, got ${shown(all)}`);
  if (all && given.length > 0) throw new TypeError(`redrive: all and ${given.join(', ')} exclude each other`);
  if (!all && given.length === 0) {
    throw new TypeError(
      `redrive: its filter must have one of ${WHICH.join(', ')}; every job is { all: true }`,
    );
  }
  const { kind, queue, limit, finishedAfter, finishedBefore } = which;
  if (kind !== undefined) checkText('redrive: kind', kind, MAX_NAME_BYTES);
  if (queue !== undefined) checkText('redrive: queue', queue, MAX_NAME_BYTES);
  if (finishedAfter !== undefined) checkDate('redrive: finishedAfter', finishedAfter);
  if (finishedBefore !== undefined) checkDate('redrive: finishedBefore', finishedBefore);
  if (limit !== undefined) checkInteger('redrive: limit', limit, 1, Number.MAX_SAFE_INTEGER);
  return which;
}
