import { checkOptions, namesOf } from '../../job/known-options.ts';
import { checkDate, checkId, checkIds, checkInteger, checkText, MAX_NAME_BYTES } from '../../job/limits.ts';
import { shown } from '../../job/shown.ts';
import { redriveQueueByQueue, redrivesByQueue } from '../../queries/operate/redrive-by-queue.ts';
import { type RedriveResult, redriveJobs as redriveInOne } from '../../queries/operate/redrive-jobs.ts';
import { isCitus } from '../../queries/presence/is-citus.ts';
import type { QueueTables } from '../../schema/index.ts';
import { type OwnColumn, ownColumnsOf } from '../../schema/own-columns.ts';
import { checkExecutor, type Executor } from '../../sql/executor.ts';
import type { Redrive } from '../../sql/is-discarded.ts';
import { ownWanted } from '../../sql/own-values.ts';
import type { WakeUp } from '../../sql/wake-up.ts';
import { type Batching, checkBatching, DEFAULT_BATCH_SIZE } from '../enqueue/batching.ts';
import { ANY_QUEUE, type WakeUps } from '../enqueue/wake-ups.ts';
import { checkManyFilter } from './many-filter.ts';

/**
 * Which discarded jobs {@link Queue.redrive} puts back: those that fit all that is given, the app's own
 * columns among it, or `all`. No value may be `undefined`: a variable that was never set must not mean every
 * job.
 */
export interface RedriveFilter {
  /** Every discarded job, without `id`, `ids`, `kind`, `queue` and times. */
  all?: true;
  id?: number;
  /** Only these jobs, at most 10,000; an empty array means none. */
  ids?: readonly number[];
  kind?: string;
  queue?: string;
  /** `cancelled`: cancelled jobs instead of discarded ones. @default 'discarded' */
  state?: 'discarded' | 'cancelled';
  /** Only jobs that were discarded at this time or later. */
  finishedAfter?: Date;
  /** Only jobs that were discarded before this time. */
  finishedBefore?: Date;
  /** The most jobs to put back, the oldest ids first. @default no limit */
  limit?: number;
}

/** The options of {@link Queue.redrive}. With any of them it works in batches. */
export interface RedriveOptions extends Batching<RedriveResult> {
  /** @default 1,000 with `onProgress` or `signal`; otherwise all in one statement */
  batchSize?: number | undefined;
}

const FILTER = namesOf<RedriveFilter>({
  all: true,
  id: true,
  ids: true,
  kind: true,
  queue: true,
  state: true,
  finishedAfter: true,
  finishedBefore: true,
  limit: true,
});
const WHICH = ['id', 'ids', 'kind', 'queue', 'finishedAfter', 'finishedBefore'] as const;
const OPTIONS = namesOf<RedriveOptions>({ batchSize: true, onProgress: true, signal: true });

/**
 * Puts discarded or cancelled jobs back, and notifies their workers as `wakeUps` allows.
 *
 * @throws RangeError | TypeError before anything is sent
 */
export async function redrive(
  db: Executor,
  tables: QueueTables,
  which: number | RedriveFilter,
  wakeUps: WakeUps | undefined,
  options: RedriveOptions = {},
): Promise<RedriveResult> {
  checkExecutor('redrive', db);
  const own = ownColumnsOf(tables.queueJobs);
  const filter: Redrive =
    typeof which === 'number' ? { id: checkId('redrive', which) } : checkFilter(which, own);
  checkBatching('redrive', checkOptions('redrive: options', options, OPTIONS));
  const { batchSize, onProgress, signal } = options;
  const everywhere = filter.queue === undefined && (await isCitus(db, tables));
  if (batchSize !== undefined || onProgress !== undefined || signal !== undefined) {
    const parts = everywhere ? await redrivesByQueue(db, tables, filter) : [filter];
    return await redriveInBatches(db, tables, parts, wakeUps, options);
  }
  const redriveJobs = everywhere ? redriveQueueByQueue : redriveInOne;
  const { redriven, duplicates } = await waking(db, filter, wakeUps, (wakeUp) =>
    redriveJobs(db, tables, filter, wakeUp),
  );
  return { redriven, duplicates };
}

async function redriveInBatches(
  db: Executor,
  tables: QueueTables,
  parts: readonly Redrive[],
  wakeUps: WakeUps | undefined,
  { batchSize = DEFAULT_BATCH_SIZE, onProgress, signal }: RedriveOptions,
): Promise<RedriveResult> {
  const sums = { redriven: 0, duplicates: 0 };
  for (const part of parts) {
    let left = part.limit ?? Number.POSITIVE_INFINITY;
    for (let after = 0; left > 0; ) {
      signal?.throwIfAborted();
      const batch = { ...part, after, limit: Math.min(batchSize, left) };
      const { redriven, duplicates, last } = await waking(db, batch, wakeUps, (wakeUp) =>
        redriveInOne(db, tables, batch, wakeUp),
      );
      const looked = redriven + duplicates;
      sums.redriven += redriven;
      sums.duplicates += duplicates;
      if (looked > 0) onProgress?.({ ...sums });
      // Fewer than it may take: there are no more.
      if (looked < batch.limit || last === undefined) break;
      left -= looked;
      after = last;
    }
  }
  return sums;
}

async function waking<T extends RedriveResult>(
  db: Executor,
  { queue = ANY_QUEUE }: Redrive,
  wakeUps: WakeUps | undefined,
  redrive: (wakeUp: WakeUp | undefined) => Promise<T>,
): Promise<T> {
  if (wakeUps === undefined) return await redrive(undefined);
  return await wakeUps.allow(db, [queue], async (wakeUp) => {
    const answer = await redrive(wakeUp);
    return { ...answer, woken: answer.redriven > 0 && wakeUp !== undefined ? [queue] : [] };
  });
}

function checkFilter(given: RedriveFilter, own: readonly OwnColumn[]): Redrive {
  const which = checkManyFilter('redrive', given, FILTER, WHICH, own);
  const { id, ids, kind, queue, state, limit, finishedAfter, finishedBefore } = which;
  if (id !== undefined) checkId('redrive', id);
  if (ids !== undefined) checkIds('redrive', ids);
  if (state !== undefined && state !== 'discarded' && state !== 'cancelled') {
    throw new TypeError(`redrive: state must be discarded or cancelled, got ${shown(state)}`);
  }
  if (kind !== undefined) checkText('redrive: kind', kind, MAX_NAME_BYTES);
  if (queue !== undefined) checkText('redrive: queue', queue, MAX_NAME_BYTES);
  if (finishedAfter !== undefined) checkDate('redrive: finishedAfter', finishedAfter);
  if (finishedBefore !== undefined) checkDate('redrive: finishedBefore', finishedBefore);
  if (limit !== undefined) checkInteger('redrive: limit', limit, 1, Number.MAX_SAFE_INTEGER);
  const filter = { id, ids, kind, queue, state, limit, finishedAfter, finishedBefore };
  return { ...filter, own: ownWanted(own, which, 'redrive') };
}
