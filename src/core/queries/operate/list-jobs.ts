import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { fitsFilter, type JobFilter } from '../../sql/job-filter.ts';
import {
  type JobRecord,
  type JobState,
  liveRecords,
  resultRecords,
  toJobRecord,
} from '../../sql/job-record.ts';
import type { JobScope } from '../../sql/job-scope.ts';
import { type TimeRange, timeIsWithin } from '../../sql/time-range.ts';
import { type JobSearch, jobFits } from '../browse/browse-jobs.ts';

const EVERYTHING: JobScope = { queues: undefined, own: [] };

export interface JobsPage extends Omit<JobFilter, 'id' | 'ids'> {
  readonly before: number | undefined;
  readonly limit: number;
  readonly finished?: TimeRange | undefined;
  /** How many of the newest ids it looks through at most; `undefined`: through all. */
  readonly searchLimit?: number | undefined;
  /** What else a filter text asks for. */
  readonly search?: JobSearch | undefined;
}

/** Jobs of a page, newest id first. */
export interface JobsFound {
  readonly records: JobRecord[];
  /** The newest id that was not looked at, where there were more than `searchLimit`. */
  readonly unsearched: number | undefined;
}

/**
 * Live jobs and results together, newest id first.
 *
 * **Under concurrency.** One statement, so one snapshot. Pages go by id, which a job keeps for life, so a job
 * that finishes between two pages is listed once.
 */
export async function listJobs(db: Executor, tables: QueueTables, page: JobsPage): Promise<JobsFound> {
  const rows = await queryRows(db, tables, listJobsQuery(tables, page));
  const own = ownColumnsOf(tables.queueJobs);
  const unsearched = rows[0]?.unsearched;
  return {
    records: rows.filter(({ id }) => id !== null).map((row) => toJobRecord(row, own)),
    unsearched: unsearched === null || unsearched === undefined ? undefined : Number(unsearched),
  };
}

/** @crossesQueues (plain; searched) a page over all queues, unless a filter names one */
export function listJobsQuery(tables: QueueTables, page: JobsPage): SQL {
  const { before, limit, finished, searchLimit: _, search, ...filter } = page;
  const { state } = filter;
  const where = (table: 'j' | 'r', id: string): SQL => {
    const column = (name: string) => sql.raw(`${table}.${name}`);
    const conditions = [
      before === undefined ? undefined : sql`${column(id)} < ${before}`,
      ...fitsFilter(filter, table),
      ...(table === 'r' ? timeIsWithin(column('finished_at'), finished) : []),
      search === undefined ? undefined : jobFits({ search, scope: EVERYTHING }, table),
    ].filter((condition) => condition !== undefined);
    const all = conditions.length === 0 ? sql`true` : sql.join(conditions, sql` and `);
    // Ordered and limited inside each half, which then reads its primary key only as far as the page needs.
    return sql`${all} order by ${column(id)} desc limit ${limit}`;
  };
  // Only one table can have jobs of a given state; the other would be read to its end for nothing.
  const live = (state === undefined || isLive(state)) && finished === undefined;
  const ended = state === undefined || !isLive(state);
  const { jobs, results, unsearched } = searched(tables, page, { live, ended });
  const halves = [
    live ? sql`(${liveRecords(tables, where('j', 'id'), jobs)})` : undefined,
    ended ? sql`(${resultRecords(tables, where('r', 'job_id'), results)})` : undefined,
  ].filter((half) => half !== undefined);
  const found = sql`
    select * from (
      ${sql.join(halves, sql` union all `)}
    ) as record
    order by id desc limit ${limit}`;
  if (unsearched === undefined) return found;
  return sql`
    with unsearched as materialized (${unsearched}
    )
    select u.unsearched, f.* from (select (select id from unsearched) as unsearched) as u
    left join (${found}
    ) as f on true
    order by f.id desc`;
}

/**
 * The newest rows of each table, as many as are looked through, and a select of the newest id of both that is
 * not among them. The limit stands inside, before any filter: by a condition on the id alone the planner
 * expects a third of the table, and reads all of it.
 */
function searched(
  { queueJobs, queueResults }: QueueTables,
  { before, searchLimit }: JobsPage,
  { live, ended }: { readonly live: boolean; readonly ended: boolean },
): { readonly jobs?: SQL; readonly results?: SQL; readonly unsearched?: SQL } {
  if (searchLimit === undefined) return {};
  const below = (id: SQL) => (before === undefined ? sql`true` : sql`${id} < ${before}`);
  const newest = (rows: SQL, id: SQL, above: SQL, most: number) => sql`(
        select ${rows} where ${below(id)}${above}
        order by ${id} desc limit ${most}::int8
      )`;
  const ids = (rows: SQL, id: SQL) => newest(sql`${id} as id from ${rows}`, id, sql``, searchLimit + 1);
  // Together no more rows of both than are looked through.
  const all = (rows: SQL, id: SQL) =>
    newest(rows, id, sql` and ${id} > coalesce((select id from unsearched), 0)`, searchLimit);
  const halves = [
    live ? ids(sql`${queueJobs} as j`, sql`j.id`) : undefined,
    ended ? ids(sql`${queueResults} as r`, sql`r.job_id`) : undefined,
  ].filter((half) => half !== undefined);
  return {
    jobs: all(sql`j.* from ${queueJobs} as j`, sql`j.id`),
    results: all(sql`r.* from ${queueResults} as r`, sql`r.job_id`),
    unsearched: sql`
      select i.id from (${sql.join(halves, sql` union all `)}) as i
      order by i.id desc offset ${searchLimit}::int8 limit 1`,
  };
}

function isLive(state: JobState | 'retrying'): boolean {
  return state !== 'completed' && state !== 'discarded' && state !== 'cancelled';
}
