import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { hasKey, isSoughtResult, jobsOfGroup, jobsOfKey } from '../../sql/found-by-index.ts';
import { fitsFilter } from '../../sql/job-filter.ts';
import { type JobLine, lineColumns, toJobLine } from '../../sql/job-line.ts';
import type { JobState } from '../../sql/job-record.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';
import type { OwnWanted } from '../../sql/own-values.ts';
import { failedJobs } from '../../sql/retrying.ts';

export interface JobSearch {
  /** `retrying`: has failed and waits for its next attempt, so that it is due or scheduled as well. */
  readonly state?: JobState | 'retrying' | undefined;
  readonly kind?: string | undefined;
  readonly queue?: string | undefined;
  readonly group?: string | undefined;
  /** The key of a result, or the unique or waiting key of a live job. */
  readonly uniqueKey?: string | undefined;
  readonly workerId?: number | undefined;
  readonly id?: number | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
  /** JSON objects; the payload must contain one of each list. */
  readonly payload: readonly (readonly string[])[];
  readonly own: readonly OwnWanted[];
}

export interface JobsToBrowse {
  readonly search: JobSearch;
  readonly scope: JobScope;
  readonly before: number | undefined;
  readonly limit: number;
  /** The most rows to read of live jobs, and of results, where no index finds those that fit. */
  readonly bound: number;
  /** What finds the live jobs. @default newest */
  readonly live?: LiveSource | undefined;
  /** What finds the results. @default newest */
  readonly results?: ResultSource | undefined;
  /** How many characters of a payload to read. */
  readonly excerpt: number;
}

/**
 * `newest`: the newest rows are read, as many as `bound` says. With the others an index finds all that have
 * the key or are in the group of the search, or that have failed. An id is always found so, of live jobs
 * and of results.
 */
export type LiveSource = 'key' | 'group' | 'failed' | 'newest';
/** `sought`: an index finds those with the key or of the group of the search, the newest `bound` of them. */
export type ResultSource = 'sought' | 'newest';

/**
 * A page of live jobs and results for people, newest id first, with the beginning of each payload. Most
 * filters have no index: each half then reads the newest `bound` rows at most, so a page costs no more.
 *
 * **Under concurrency.** One statement, so one snapshot, as `listJobs`; a plain read.
 */
export async function browseJobs(db: Executor, tables: QueueTables, page: JobsToBrowse): Promise<JobLine[]> {
  const rows = await queryRows(db, tables, browseJobsQuery(tables, page));
  const own = ownColumnsOf(tables.queueJobs);
  return rows.map((row) => toJobLine(row, own));
}

/**
 * @crossesQueues (plain; of a key; of a key among the newest; of a group; retrying) a page over all queues,
 * unless a filter names one
 * @insteadOnCitus (of a key; of a group; of ended jobs of a group) browseJobsQuery, of a key among the
 * newest
 */
export function browseJobsQuery(tables: QueueTables, page: JobsToBrowse): SQL {
  const { state } = page.search;
  const halves = [
    ...(isFinalState(state) ? [] : [liveHalf(tables, page)]),
    ...(state === undefined || isFinalState(state) ? [resultHalf(tables, page)] : []),
  ];
  return sql`
    select * from (${sql.join(halves, sql` union all `)}
    ) as line
    order by id desc limit ${page.limit}`;
}

/** The limits stand inside, so that only the rows of the page are turned into texts. */
function liveHalf(tables: QueueTables, page: JobsToBrowse): SQL {
  return sql`
      (select ${lineColumns(tables, 'j', page.excerpt)} from (
        select j.* from ${liveRows(tables, page)} as j
        where ${jobFits(page, 'j')}${isBelow(page, 'j.id')}
        order by j.id desc limit ${page.limit}
      ) as j)`;
}

function resultHalf(tables: QueueTables, page: JobsToBrowse): SQL {
  return sql`
      (select ${lineColumns(tables, 'r', page.excerpt)} from (
        select r.* from ${resultRows(tables, page)}
        where ${jobFits(page, 'r')}${isBelow(page, 'r.job_id')}
        order by ${sql.raw(page.results === 'sought' ? 'i.job_id' : 'r.job_id')} desc limit ${page.limit}
      ) as r)`;
}

/** The results `r` among which those that fit are sought. */
function resultRows({ queueResults }: QueueTables, page: JobsToBrowse): SQL {
  if (page.search.id !== undefined) return sql`${queueResults} as r`;
  if (page.results !== 'sought') {
    return sql`(
          select r.* from ${queueResults} as r where true${isBelow(page, 'r.job_id')}
          order by r.job_id desc limit ${page.bound}
        ) as r`;
  }
  // Ids alone, which the index has in this order: with whole rows the planner would read and sort them all.
  return sql`(
          select r.job_id from ${queueResults} as r
          where ${isSoughtResult(page.search)}${isBelow(page, 'r.job_id')}
          order by r.job_id desc limit ${page.bound}
        ) as i cross join lateral (
          select r.* from ${queueResults} as r where r.job_id = i.job_id limit 1
        ) as r`;
}

/** The live jobs among which those that fit are sought. */
function liveRows(tables: QueueTables, page: JobsToBrowse): SQL {
  const { id, uniqueKey, group } = page.search;
  if (id !== undefined) return sql`${tables.queueJobs}`;
  if (page.live === 'key' && uniqueKey !== undefined) return jobsOfKey(tables, uniqueKey);
  if (page.live === 'group' && group !== undefined) return jobsOfGroup(tables, group, { limit: page.bound });
  if (page.live === 'failed') return failedJobs(tables, page.bound);
  return sql`(
          select j.* from ${tables.queueJobs} as j where true${isBelow(page, 'j.id')}
          order by j.id desc limit ${page.bound}
        )`;
}

function isBelow({ before }: JobsToBrowse, id: string): SQL {
  return before === undefined ? sql`` : sql` and ${sql.raw(id)} < ${before}`;
}

/** That a job is in a scope and fits a search; for a `where` over live jobs `j` or results `r`. */
export function jobFits({ search, scope }: Pick<JobsToBrowse, 'search' | 'scope'>, alias: 'j' | 'r'): SQL {
  const column = (name: string) => sql.raw(`${alias}.${name}`);
  const { payload, uniqueKey, workerId, createdAfter: after, createdBefore: before, ...filter } = search;
  const all = [
    ...inScope(scope, alias),
    ...fitsFilter({ ...filter, created: { after, before } }, alias),
    uniqueKey === undefined ? undefined : hasKey(uniqueKey, alias),
    workerId === undefined ? undefined : sql`${column('worker_id')} = ${workerId}`,
    ...payload.map((some) => contains(column('payload'), some)),
  ].filter((condition) => condition !== undefined);
  return all.length === 0 ? sql`true` : sql.join(all, sql` and `);
}

function contains(payload: SQL, some: readonly string[]): SQL {
  const each = some.map((json) => sql`${payload} @> ${json}::text::jsonb`);
  return sql`(${sql.join(each, sql` or `)})`;
}

export function isFinalState(state: JobSearch['state']): boolean {
  return state === 'completed' || state === 'discarded' || state === 'cancelled';
}
