import { checkDefinition, type JobDefinition } from '../job/definition.ts';
import { checkOptions, namesOf } from '../job/known-options.ts';
import { checkInteger, checkText, MAX_NAME_BYTES } from '../job/limits.ts';
import { shown } from '../job/shown.ts';
import { listJobs } from '../queries/list-jobs.ts';
import type { QueueTables } from '../schema/index.ts';
import { ownColumnsOf } from '../schema/own-columns.ts';
import type { Executor } from '../sql/executor.ts';
import type { JobRecord, JobState } from '../sql/job-record.ts';
import { ownWanted } from '../sql/own-values.ts';

/** The filter of {@link Queue.list}. */
export interface ListFilter<TJob extends JobDefinition = JobDefinition> {
  /** Only jobs of this definition's kind, with typed payload and output. */
  job?: TJob | undefined;
  /** Only jobs of this kind. Not together with `job`. */
  kind?: string | undefined;
  queue?: string | undefined;
  /** Only jobs of this group; together with `queue`. */
  group?: string | undefined;
  state?: JobState | undefined;
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
}

/** One page of live jobs and results. @throws RangeError | TypeError before anything is sent */
export async function list(
  db: Executor,
  tables: QueueTables,
  filter: ListFilter,
): Promise<JobList<JobRecord>> {
  const own = ownColumnsOf(tables.queueJobs);
  checkOptions('list: its filter', filter, FILTER, own);
  const limit = checkInteger('list: limit', filter.limit ?? 50, 1, 1_000);
  if (filter.job !== undefined) checkDefinition('list', filter.job);
  if (filter.job !== undefined && filter.kind !== undefined) {
    throw new TypeError('list: job and kind exclude each other');
  }
  if (filter.cursor !== undefined) checkInteger('list: cursor', filter.cursor, 1, Number.MAX_SAFE_INTEGER);
  if (filter.kind !== undefined) checkText('list: kind', filter.kind, MAX_NAME_BYTES);
  if (filter.queue !== undefined) checkText('list: queue', filter.queue, MAX_NAME_BYTES);
  if (filter.group !== undefined) checkText('list: group', filter.group, MAX_NAME_BYTES);
  if (filter.group !== undefined && filter.queue === undefined) {
    throw new TypeError('list: group is that of a queue: give queue as well');
  }
  const records = await listJobs(db, tables, {
    kind: filter.job?.kind ?? filter.kind,
    queue: filter.queue,
    group: filter.group,
    state: filter.state === undefined ? undefined : checkState(filter.state),
    before: filter.cursor,
    limit: limit + 1,
    own: ownWanted(own, filter),
  });
  const jobs = records.slice(0, limit);
  return { jobs, nextCursor: records.length > limit ? jobs.at(-1)?.id : undefined };
}

const STATES: Readonly<Record<JobState, true>> = {
  scheduled: true,
  due: true,
  running: true,
  waiting: true,
  completed: true,
  discarded: true,
  cancelled: true,
};

/** A misspelt state would give an empty list, which looks like good news. */
function checkState(state: JobState): JobState {
  if (typeof state === 'string' && Object.hasOwn(STATES, state)) return state;
  throw new TypeError(`list: state must be one of ${Object.keys(STATES).join(', ')}; got ${shown(state)}`);
}
