import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../schema/own-columns.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { type JobLine, lineColumns, toJobLine } from '../sql/job-line.ts';
import type { JobState } from '../sql/job-record.ts';
import { liveState } from '../sql/job-record.ts';
import { hasOwn, inScope, type JobScope } from '../sql/job-scope.ts';
import type { OwnWanted } from '../sql/own-values.ts';

/** Which jobs to look for. */
export interface JobSearch {
  readonly state?: JobState | undefined;
  readonly kind?: string | undefined;
  readonly queue?: string | undefined;
  readonly group?: string | undefined;
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
  /** The most rows to read of live jobs, and of results. */
  readonly bound: number;
  /** How many characters of a payload to read. */
  readonly excerpt: number;
}

/**
 * A page of live jobs and results for people, newest id first, with the beginning of each payload. Filters
 * have no index: each half reads the newest `bound` rows at most, so a page costs no more than that.
 *
 * **Under concurrency.** One statement, so one snapshot, as `listJobs`; a plain read.
 */
export async function browseJobs(db: Executor, tables: QueueTables, page: JobsToBrowse): Promise<JobLine[]> {
  const rows = await queryRows(db, tables, browseJobsQuery(tables, page));
  const own = ownColumnsOf(tables.queueJobs);
  return rows.map((row) => toJobLine(row, own));
}

export function browseJobsQuery(tables: QueueTables, page: JobsToBrowse): SQL {
  const { state } = page.search;
  const halves = [
    ...(state === undefined || !isFinal(state) ? [liveHalf(tables, page)] : []),
    ...(state === undefined || isFinal(state) ? [resultHalf(tables, page)] : []),
  ];
  return sql`
    select * from (${sql.join(halves, sql` union all `)}
    ) as line
    order by id desc limit ${page.limit}`;
}

/** The limits stand inside, so that only the rows of the page are turned into texts. */
function liveHalf(tables: QueueTables, page: JobsToBrowse): SQL {
  const newest = page.before === undefined ? sql`` : sql`where j.id < ${page.before}`;
  return sql`
      (select ${lineColumns(tables, 'j', page.excerpt)} from (
        select j.* from (
          select j.* from ${tables.queueJobs} as j ${newest} order by j.id desc limit ${page.bound}
        ) as j
        where ${jobFits(page, 'j')}
        order by j.id desc limit ${page.limit}
      ) as j)`;
}

function resultHalf(tables: QueueTables, page: JobsToBrowse): SQL {
  const newest = page.before === undefined ? sql`` : sql`where r.job_id < ${page.before}`;
  return sql`
      (select ${lineColumns(tables, 'r', page.excerpt)} from (
        select r.* from (
          select r.* from ${tables.queueResults} as r ${newest} order by r.job_id desc limit ${page.bound}
        ) as r
        where ${jobFits(page, 'r')}
        order by r.job_id desc limit ${page.limit}
      ) as r)`;
}

/** That a job is in a scope and fits a search; for a `where` over live jobs `j` or results `r`. */
export function jobFits({ search, scope }: Pick<JobsToBrowse, 'search' | 'scope'>, alias: 'j' | 'r'): SQL {
  const column = (name: string) => sql.raw(`${alias}.${name}`);
  const { state, kind, queue, group, uniqueKey, workerId, id, createdAfter, createdBefore } = search;
  const all = [
    ...inScope(scope, alias),
    id === undefined ? undefined : sql`${column(alias === 'j' ? 'id' : 'job_id')} = ${id}`,
    state === undefined ? undefined : sql`${alias === 'j' ? liveState : column('state')} = ${state}`,
    kind === undefined ? undefined : sql`${column('kind')} = ${kind}`,
    queue === undefined ? undefined : sql`${column('queue')} = ${queue}`,
    group === undefined ? undefined : sql`${column('group_key')} = ${group}`,
    uniqueKey === undefined ? undefined : sql`${column('unique_key')} = ${uniqueKey}`,
    workerId === undefined ? undefined : sql`${column('worker_id')} = ${workerId}`,
    createdAfter && sql`${column('created_at')} >= ${createdAfter.toISOString()}::timestamptz`,
    createdBefore && sql`${column('created_at')} < ${createdBefore.toISOString()}::timestamptz`,
    ...search.payload.map((some) => contains(column('payload'), some)),
    ...search.own.map((wanted) => hasOwn(wanted, alias)),
  ].filter((condition) => condition !== undefined);
  return all.length === 0 ? sql`true` : sql.join(all, sql` and `);
}

function contains(payload: SQL, some: readonly string[]): SQL {
  const each = some.map((json) => sql`${payload} @> ${json}::text::jsonb`);
  return sql`(${sql.join(each, sql` or `)})`;
}

function isFinal(state: JobState): boolean {
  return state === 'completed' || state === 'discarded' || state === 'cancelled';
}
