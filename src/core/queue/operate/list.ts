import { checkDefinition, type JobDefinition } from '../../job/definition.ts';
import { checkOptions, namesOf } from '../../job/known-options.ts';
import { checkInteger, checkText, MAX_NAME_BYTES } from '../../job/limits.ts';
import { listJobs } from '../../queries/operate/list-jobs.ts';
import type { QueueTables } from '../../schema/index.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { checkExecutor, type Executor } from '../../sql/executor.ts';
import type { JobRecord, JobState } from '../../sql/job-record.ts';
import { ownWanted } from '../../sql/own-values.ts';
import { checkCreated, checkFinished, checkState, isLiveState, payloadText } from './filter-values.ts';

/** The filter of {@link Queue.list}. */
export interface ListFilter<TJob extends JobDefinition = JobDefinition> {
  /** Only jobs of this definition's kind, with typed payload and output. */
  job?: TJob | undefined;
  /** Only jobs of this kind. Not together with `job`. */
  kind?: string | undefined;
  queue?: string | undefined;
  /** Only jobs of this group; together with `queue`. */
  group?: string | undefined;
  /** `retrying`: those that have failed and wait for their next attempt; they are due or scheduled. */
  state?: JobState | 'retrying' | undefined;
  /**
   * Only jobs whose stored payload contains this, as `@>` of Postgres's jsonb: `{ user: { id: 7 } }` for
   * those with at least that. No index serves it.
   */
  payload?: unknown;
  /** Only jobs that were enqueued at this time or later. */
  createdAfter?: Date | undefined;
  /** Only jobs that were enqueued before this time. */
  createdBefore?: Date | undefined;
  /** Only jobs that have ended, at this time or later. */
  finishedAfter?: Date | undefined;
  /** Only jobs that have ended, before this time. */
  finishedBefore?: Date | undefined;
  /**
   * Look through this many of the newest ids at most, 1 to 10,000,000, beginning at the `cursor`. Where more
   * are left and the page is not full, it is `truncated`.
   * @default 100_000 with `payload` or a time, otherwise no limit
   */
  searchLimit?: number | undefined;
  /** The `nextCursor` of the previous page. @default the first page */
  cursor?: number | undefined;
  /** 1–1,000 jobs a page. @default 50 */
  limit?: number | undefined;
}

const FILTER = namesOf<ListFilter>({
  job: true,
  kind: true,
  queue: true,
  group: true,
  state: true,
  payload: true,
  createdAfter: true,
  createdBefore: true,
  finishedAfter: true,
  finishedBefore: true,
  searchLimit: true,
  cursor: true,
  limit: true,
});

/** The values that the app's own columns must have; `null` matches null. */
export type OwnFilter<TOwn> = { readonly [K in keyof TOwn]?: TOwn[K] | undefined };

/** One page of jobs, newest id first. */
export interface JobList<TRecord> {
  readonly jobs: TRecord[];
  /** For the next page; `undefined` on the last one. */
  readonly nextCursor: number | undefined;
  /**
   * Whether the search has stopped at `searchLimit` before the page was full. Then `nextCursor` goes on with
   * the ids that were not looked at, which may hold further jobs, or none.
   */
  readonly truncated: boolean;
}

/** How far a search goes that no index serves. */
const SEARCH_LIMIT = 100_000;
const MAX_SEARCH_LIMIT = 10_000_000;

/** One page of live jobs and results. @throws RangeError | TypeError before anything is sent */
export async function list(
  db: Executor,
  tables: QueueTables,
  filter: ListFilter,
): Promise<JobList<JobRecord>> {
  checkExecutor('list', db);
  const own = ownColumnsOf(tables.queueJobs);
  checkOptions('list: filter', filter, FILTER, own);
  const limit = checkInteger('list: limit', filter.limit ?? 50, 1, 1_000);
  if (filter.job !== undefined) checkDefinition('list', filter.job);
  if (filter.job !== undefined && filter.kind !== undefined) {
    throw new TypeError('list: job and kind cannot be combined');
  }
  if (filter.cursor !== undefined) checkInteger('list: cursor', filter.cursor, 1, Number.MAX_SAFE_INTEGER);
  if (filter.kind !== undefined) checkText('list: kind', filter.kind, MAX_NAME_BYTES);
  if (filter.queue !== undefined) checkText('list: queue', filter.queue, MAX_NAME_BYTES);
  if (filter.group !== undefined) checkText('list: group', filter.group, MAX_NAME_BYTES);
  if (filter.group !== undefined && filter.queue === undefined) {
    throw new TypeError('list: group needs queue: a group belongs to a queue');
  }
  const state = filter.state === undefined ? undefined : checkState('list', filter.state);
  const created = checkCreated('list', filter);
  const finished = checkFinished('list', filter);
  if (finished !== undefined && (state === 'retrying' || isLiveState(state))) {
    throw new TypeError(
      `list: finishedAfter and finishedBefore apply only to ended jobs, and state is '${state}'`,
    );
  }
  const payload = filter.payload === undefined ? undefined : payloadText('list', filter.payload);
  const searches = payload !== undefined || created !== undefined || finished !== undefined;
  const { searchLimit = searches ? SEARCH_LIMIT : undefined } = filter;
  if (searchLimit !== undefined) checkInteger('list: searchLimit', searchLimit, 1, MAX_SEARCH_LIMIT);
  const { records, unsearched } = await listJobs(db, tables, {
    kind: filter.job?.kind ?? filter.kind,
    queue: filter.queue,
    group: filter.group,
    state,
    before: filter.cursor,
    limit: limit + 1,
    payload,
    created,
    finished,
    searchLimit,
    own: ownWanted(own, filter),
  });
  const jobs = records.slice(0, limit);
  if (records.length > limit) return { jobs, nextCursor: jobs.at(-1)?.id, truncated: false };
  // The next page's ids are below its cursor.
  const nextCursor = unsearched === undefined ? undefined : unsearched + 1;
  return { jobs, nextCursor, truncated: unsearched !== undefined };
}
