import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { isSoughtResult } from '../../sql/found-by-index.ts';
import type { JobSearch } from './browse-jobs.ts';

export interface SearchToEnd {
  readonly before: number | undefined;
  /** An end at or below this id is not looked for. */
  readonly above?: number | undefined;
  readonly bound: number;
  /** Whether only the newest were read of the live jobs, and of the results. */
  readonly of: { readonly live: boolean; readonly ended: boolean };
  /** Where an index has found the results: by what. */
  readonly sought?: Pick<JobSearch, 'uniqueKey' | 'group'> | undefined;
}

/**
 * The id above which `browseJobs` has seen every job: of each table that it reads by id and that has more
 * than `bound` rows the last id that it read; `undefined` where it has read all.
 *
 * **Under concurrency.** A plain read; new jobs have larger ids, so what it says stays true.
 */
export async function findSearchEnd(
  db: Executor,
  tables: QueueTables,
  search: SearchToEnd,
): Promise<number | undefined> {
  const [row] = await queryRows(db, tables, findSearchEndQuery(tables, search));
  const end = row?.last;
  return end === null || end === undefined ? undefined : Number(end);
}

/** @crossesQueues (plain; of a full page) how far a page over all queues was read */
export function findSearchEndQuery(
  { queueJobs, queueResults }: QueueTables,
  { before, above, bound, of, sought }: SearchToEnd,
): SQL {
  const last = before ?? Number.MAX_SAFE_INTEGER;
  const isAbove = (id: string) => (above === undefined ? sql`` : sql` and ${sql.raw(id)} > ${above}::int8`);
  const isSought = sought === undefined ? sql.raw('true') : isSoughtResult(sought);
  const halves = [
    of.live
      ? sql`
      (select j.id from ${queueJobs} as j where j.id < ${last}::int8${isAbove('j.id')}
        order by j.id desc offset ${bound - 1} limit 1)`
      : undefined,
    of.ended
      ? sql`
      (select r.job_id as id from ${queueResults} as r
        where ${isSought} and r.job_id < ${last}::int8${isAbove('r.job_id')}
        order by r.job_id desc offset ${bound - 1} limit 1)`
      : undefined,
  ].filter((half) => half !== undefined);
  return sql`
    select max(e.id)::float8 as last from (${sql.join(halves, sql` union all `)}
    ) as e`;
}
