import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** A row of one of the two tables, by its primary key. */
export interface PlaceOfRow {
  readonly jobId: number;
  readonly queue: string;
  readonly name: string;
}

/** The rows that {@link pruneLeftRows} has looked at. */
export interface PrunedSlice {
  readonly pruned: number;
  /** The last of them; `undefined` once there are no more. */
  readonly last: PlaceOfRow | undefined;
}

/** Which table a slice is of. */
export type WorkflowTable = 'queueSteps' | 'queueMailboxes';

/**
 * Looks at the next `limit` rows of a table, in the order of its primary key, and deletes those of jobs that
 * are neither live nor have a result.
 *
 * **Under concurrency.** A job is live until the statement that writes its result, so it is always seen in
 * one of the two. A row that another prune is deleting is waited for, which takes a moment, and then is gone.
 */
export async function pruneLeftRows(
  db: Runner,
  tables: TablesOfWorkflows,
  which: WorkflowTable,
  after: PlaceOfRow | undefined,
  limit: number,
): Promise<PrunedSlice> {
  const query = pruneLeftRowsQuery(tables, which, after, limit);
  const [row] = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  const isFull = Number(row?.looked) === limit;
  return {
    pruned: Number(row?.pruned),
    last: isFull
      ? { jobId: Number(row?.job_id), queue: String(row?.queue), name: String(row?.name) }
      : undefined,
  };
}

export function pruneLeftRowsQuery(
  tables: TablesOfWorkflows,
  which: WorkflowTable,
  after: PlaceOfRow | undefined,
  limit: number,
): SQL {
  const { queueJobs, queueResults } = tables;
  const table = tables[which];
  const { jobId, queue, name } = after ?? { jobId: 0, queue: '', name: '' };
  return sql`
    with slice as materialized (
      select w.job_id, w.queue, w.name from ${table} as w
      where (w.job_id, w.queue, w.name) > (${jobId}::int8, ${queue}::text, ${name}::text)
      order by w.job_id, w.queue, w.name limit ${limit}::int4
    ),
    left_over as materialized (
      select s.job_id, s.queue, s.name from slice as s
      where not exists (select from ${queueJobs} as j where j.id = s.job_id and j.queue = s.queue)
        and not exists (select from ${queueResults} as r where r.job_id = s.job_id and r.queue = s.queue)
    ),
    pruned as (
      delete from ${table} as w using left_over as l
      where w.job_id = l.job_id and w.queue = l.queue and w.name = l.name
      returning 1
    )
    select (select count(*) from slice)::float8 as looked, (select count(*) from pruned)::float8 as pruned,
      l.job_id, l.queue, l.name
    from (values (1)) as one
    left join lateral (select * from slice order by job_id desc, queue desc, name desc limit 1) as l on true`;
}
