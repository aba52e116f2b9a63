import { describeError } from '../../job/describe-error.ts';
import { checkOptions, namesOf } from '../../job/known-options.ts';
import { checkBoolean, checkIds, checkInteger, checkText, MAX_NAME_BYTES } from '../../job/limits.ts';
import { shown } from '../../job/shown.ts';
import { cancelJobs } from '../../queries/operate/cancel-jobs.ts';
import { findCancellable } from '../../queries/operate/find-cancellable.ts';
import { findLastId } from '../../queries/operate/find-last-id.ts';
import { requestCancels } from '../../queries/operate/request-cancels.ts';
import { notifyWorkers } from '../../queries/presence/notify-workers.ts';
import type { QueueTables } from '../../schema/index.ts';
import { type OwnColumn, ownColumnsOf } from '../../schema/own-columns.ts';
import { checkExecutor, type Executor } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { JobFilter } from '../../sql/job-filter.ts';
import type { LiveState } from '../../sql/job-record.ts';
import type { JobsOfQueue, JobsThatFit } from '../../sql/jobs-that-fit.ts';
import { ownWanted } from '../../sql/own-values.ts';
import { REQUESTED } from '../../sql/wake-channel.ts';
import { whileLocked } from '../../time/while-locked.ts';
import { type Batching, checkBatching, DEFAULT_BATCH_SIZE } from '../enqueue/batching.ts';
import { checkCreated, checkLiveState, payloadText } from './filter-values.ts';
import { checkManyFilter } from './many-filter.ts';

/**
 * Which live jobs {@link Queue.cancelMany} ends: those that fit all that is given, the app's own columns
 * among it, or `all`. No value may be `undefined`: a variable that was never set must not mean every job.
 */
export interface CancelFilter {
  /** Every live job, without any of the names below but `limit`. */
  all?: true;
  /** Only these jobs, at most 10,000; an empty array means none. */
  ids?: readonly number[];
  kind?: string;
  queue?: string;
  /** Only jobs of this group; together with `queue`. */
  group?: string;
  state?: LiveState;
  /** Only jobs that were enqueued at this time or later. */
  createdAfter?: Date;
  /** Only jobs that were enqueued before this time. */
  createdBefore?: Date;
  /** Only jobs whose stored payload contains this, as for {@link Queue.list}. */
  payload?: unknown;
  /** The most jobs, the oldest ids first. @default no limit */
  limit?: number;
}

/** The options of {@link Queue.cancelMany}. */
export interface CancelManyOptions extends Batching<CancelManyResult> {
  /** @default 1,000 */
  batchSize?: number | undefined;
  /** Kept in the results' errors, up to 2,000 characters, and told to handlers. @default 'cancelled' */
  reason?: string | undefined;
  /** Ends running jobs at once, as {@link Queue.cancel} does with it. @default false */
  force?: boolean | undefined;
}

/** What a {@link Queue.cancelMany} did. */
export interface CancelManyResult {
  /** How many jobs have ended. */
  readonly cancelled: number;
  /** How many running ones are asked to end; they never run again. */
  readonly requested: number;
  /** How many were left alone, because another transaction holds their rows. */
  readonly locked: number;
}

const FILTER = namesOf<CancelFilter>({
  all: true,
  ids: true,
  kind: true,
  queue: true,
  group: true,
  state: true,
  createdAfter: true,
  createdBefore: true,
  payload: true,
  limit: true,
});
const WHICH = ['ids', 'kind', 'queue', 'group', 'state', 'createdAfter', 'createdBefore', 'payload'] as const;
const OPTIONS = namesOf<CancelManyOptions>({
  reason: true,
  force: true,
  batchSize: true,
  onProgress: true,
  signal: true,
});

/** So many ids are in memory at once. With less, the jobs of many queues would end in many small batches. */
const MAX_FOUND = 100_000;

/**
 * Ends live jobs, the oldest ids first, and of these queue by queue. Jobs that were enqueued after it began
 * are not meant, so it ends however fast others enqueue.
 *
 * @param channel where workers are notified; `undefined`: they find the requests by polling
 * @throws RangeError | TypeError before anything is sent
 */
export async function cancelMany(
  db: Executor,
  tables: QueueTables,
  given: CancelFilter,
  options: CancelManyOptions,
  channel: string | undefined,
): Promise<CancelManyResult> {
  checkExecutor('cancelMany', db);
  const { limit, ...which } = checkFilter(given, ownColumnsOf(tables.queueJobs));
  checkOptions('cancelMany: options', options, OPTIONS);
  checkBatching('cancelMany', options);
  const { reason = 'cancelled', force = false } = options;
  checkBoolean('cancelMany: force', force);
  const { message } = describeError(new Error(typeof reason === 'string' ? reason : shown(reason)), 0);
  const sums = { cancelled: 0, requested: 0, locked: 0 };
  const count = (name: 'cancelled' | 'requested', jobs: number) => {
    sums[name] += jobs;
    if (jobs > 0) options.onProgress?.({ ...sums });
  };
  const { ids: _ids, queue: _queue, ...filter } = which;
  const until = await findLastId(db, tables, 'live');
  const answer = await whileLocked(async () => ((await forFound(cancelIn)) === 0 ? 'done' : 'locked'));
  // Some may have ended by themselves.
  const locked = answer === 'done' ? 0 : await forFound(async ({ ids }) => ids.length);
  return { ...sums, locked };

  /** Calls back for all jobs that are found, and returns the sum of its answers. */
  async function forFound(call: (jobs: JobsOfQueue) => Promise<number>): Promise<number> {
    let most = limit === undefined ? Number.POSITIVE_INFINITY : limit - sums.cancelled - sums.requested;
    let sum = 0;
    for (let after = 0; most > 0; ) {
      options.signal?.throwIfAborted();
      const slice = { after, until, limit: Math.min(most, MAX_FOUND) };
      const found = await findCancellable(db, tables, { filter: which, force, ...slice });
      await faultPoint('cancel: found');
      let jobs = 0;
      for (const each of found) {
        sum += await call(each);
        jobs += each.ids.length;
        after = Math.max(after, each.ids.at(-1) ?? 0);
      }
      if (jobs < slice.limit) break;
      most -= jobs;
    }
    return sum;
  }

  /** Returns how many of them are left. */
  async function cancelIn({ queue, ids }: JobsOfQueue): Promise<number> {
    const size = options.batchSize ?? DEFAULT_BATCH_SIZE;
    let left = 0;
    for (let from = 0; from < ids.length; from += size) {
      options.signal?.throwIfAborted();
      left += await cancelBatch({ queue, filter, ids: ids.slice(from, from + size) });
    }
    return left;
  }

  async function cancelBatch(batch: JobsThatFit): Promise<number> {
    let ids = batch.ids;
    const done = (name: 'cancelled' | 'requested', jobs: readonly number[]) => {
      const gone = new Set(jobs);
      ids = ids.filter((id) => !gone.has(id));
      count(name, jobs.length);
    };
    if (force || which.state !== 'running') {
      const record = { name: 'Cancelled', message };
      const ofForce = force ? { channel } : undefined;
      done('cancelled', await cancelJobs(db, tables, { ...batch, reason: record, force: ofForce }));
    }
    const mayAsk = !force && (which.state === undefined || which.state === 'running');
    if (!mayAsk || ids.length === 0) return ids.length;
    options.signal?.throwIfAborted();
    const requested = await requestCancels(db, tables, { ...batch, ids, reason: message });
    // Before the notification, which may fail: the requests are committed, and workers find them by polling.
    done('requested', requested);
    if (requested.length > 0 && channel !== undefined) await notifyWorkers(db, tables, REQUESTED, channel);
    return ids.length;
  }
}

function checkFilter(given: CancelFilter, own: readonly OwnColumn[]): JobFilter & { limit?: number } {
  const filter = checkManyFilter('cancelMany', given, FILTER, WHICH, own);
  const { ids, kind, queue, group, state, payload, limit } = filter;
  if (ids !== undefined) checkIds('cancelMany', ids);
  if (kind !== undefined) checkText('cancelMany: kind', kind, MAX_NAME_BYTES);
  if (queue !== undefined) checkText('cancelMany: queue', queue, MAX_NAME_BYTES);
  if (group !== undefined) checkText('cancelMany: group', group, MAX_NAME_BYTES);
  if (group !== undefined && queue === undefined) {
    throw new TypeError('cancelMany: group needs queue: a group belongs to a queue');
  }
  if (limit !== undefined) checkInteger('cancelMany: limit', limit, 1, Number.MAX_SAFE_INTEGER);
  return {
    ...(ids !== undefined && { ids }),
    ...(kind !== undefined && { kind }),
    ...(queue !== undefined && { queue }),
    ...(group !== undefined && { group }),
    ...(limit !== undefined && { limit }),
    state: state === undefined ? undefined : checkLiveState('cancelMany', state),
    created: checkCreated('cancelMany', filter),
    payload: payload === undefined ? undefined : payloadText('cancelMany', payload),
    own: ownWanted(own, filter, 'cancelMany'),
  };
}
