import { describeError } from '../../job/describe-error.ts';
import { checkOptions, namesOf } from '../../job/known-options.ts';
import { checkBoolean, checkIds, checkInteger, checkText, MAX_NAME_BYTES } from '../../job/limits.ts';
import { shown } from '../../job/shown.ts';
import {
  cancelJobs,
  findCancellable,
  type JobsOfQueue,
  type JobsSlice,
  requestCancels,
} from '../../queries/operate/cancel-jobs.ts';
import { notifyWorkers } from '../../queries/presence/notify-workers.ts';
import type { QueueTables } from '../../schema/index.ts';
import { type OwnColumn, ownColumnsOf } from '../../schema/own-columns.ts';
import { checkExecutor, type Executor } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { LiveState } from '../../sql/job-record.ts';
import type { LiveFilter } from '../../sql/live-filter.ts';
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

/**
 * Ends live jobs queue by queue, in slices by id. Jobs that were enqueued after it began are not meant, so it
 * ends however fast others enqueue.
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
  let until: number | undefined;
  let found = await find();
  await whileLocked(async () => {
    if (sums.locked === 0) return 'done';
    await faultPoint('cancel: found');
    sums.locked = 0;
    for (const each of found) await cancelIn(each);
    found = await find();
    return sums.locked === 0 ? 'done' : 'locked';
  });
  return sums;

  async function find(): Promise<readonly JobsOfQueue[]> {
    options.signal?.throwIfAborted();
    const left = limit === undefined ? undefined : limit - sums.cancelled - sums.requested;
    const found =
      left === 0 ? [] : await findCancellable(db, tables, { filter: which, force, until, limit: left });
    until ??= Math.max(...found.map((each) => each.until));
    sums.locked = found.reduce((sum, { jobs }) => sum + jobs, 0);
    return found;
  }

  async function cancelIn({ queue, jobs, until }: JobsOfQueue): Promise<void> {
    const most = limit === undefined ? Number.POSITIVE_INFINITY : jobs;
    let done = 0;
    const inSlices = async (
      name: 'cancelled' | 'requested',
      change: (slice: JobsSlice) => Promise<number[]>,
    ) => {
      const size = options.batchSize ?? DEFAULT_BATCH_SIZE;
      for (let after = 0; done < most; ) {
        options.signal?.throwIfAborted();
        const slice = { queue, filter: which, after, until, limit: Math.min(size, most - done) };
        const ids = await change(slice);
        done += ids.length;
        count(name, ids.length);
        if (ids.length < slice.limit) return;
        after = Math.max(...ids);
      }
    };
    const record = { name: 'Cancelled', message };
    if (force || which.state !== 'running') {
      await inSlices('cancelled', (slice) =>
        cancelJobs(db, tables, { ...slice, reason: record, force: force ? { channel } : undefined }),
      );
    }
    if (force || (which.state !== undefined && which.state !== 'running')) return;
    await inSlices('requested', async (slice) => {
      const ids = await requestCancels(db, tables, { ...slice, reason: message });
      if (ids.length > 0 && channel !== undefined) await notifyWorkers(db, tables, REQUESTED, channel);
      return ids;
    });
  }
}

function checkFilter(
  given: CancelFilter,
  own: readonly OwnColumn[],
): LiveFilter & { queue?: string; limit?: number } {
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
