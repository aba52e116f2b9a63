import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';

/**
 * The id above which `browseJobs` has seen every job: of each table that has more than `bound` rows the last
 * id that it read; `undefined` where it has read all.
 *
 * **Under concurrency.** A plain read; new jobs have larger ids, so what it says stays true.
 */
export async function findSearchEnd(
  db: Executor,
  tables: QueueTables,
  search: { readonly before: number | undefined; readonly bound: number },
): Promise<number | undefined> {
  const [row] = await queryRows(db, tables, findSearchEndQuery(tables, search));
  const end = row?.last;
  return end === null || end === undefined ? undefined : Number(end);
}

export function findSearchEndQuery(
  { queueJobs, queueResults }: QueueTables,
  { before, bound }: { readonly before: number | undefined; readonly bound: number },
): SQL {
  const last = before ?? Number.MAX_SAFE_INTEGER;
  return sql`
    select max(e.id)::float8 as last from (
      (select j.id from ${queueJobs} as j where j.id < ${last}::int8
        order by j.id desc offset ${bound - 1} limit 1)
      union all
      (select r.job_id as id from ${queueResults} as r where r.job_id < ${last}::int8
        order by r.job_id desc offset ${bound - 1} limit 1)
    ) as e`;
}
