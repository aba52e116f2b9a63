import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** Which table is looked at. */
export type WorkflowTable = 'queueSteps' | 'queueMailboxes';

/** A row of one of the two tables, by its primary key. */
export interface PlaceOfRow {
  readonly jobId: number;
  readonly queue: string;
  readonly name: string;
}

export interface LeftRows {
  /** Jobs that are gone, by their queue. */
  readonly gone: ReadonlyMap<string, readonly number[]>;
  /** The last row of the look; `undefined` once there are no more. */
  readonly last: PlaceOfRow | undefined;
}

/**
 * Looks at the next `limit` rows of a table, in the order of its primary key, for those of jobs that are
 * neither live nor have a result.
 *
 * **Under concurrency.** A plain read. A job is live until the statement that writes its result, so it is
 * always seen in one of the two.
 */
export async function findLeftRows(
  db: Runner,
  tables: TablesOfWorkflows,
  which: WorkflowTable,
  after: PlaceOfRow | undefined,
  limit: number,
): Promise<LeftRows> {
  const query = findLeftRowsQuery(tables, which, after, limit);
  const rows = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  const gone = new Map<string, number[]>();
  for (const row of rows) {
    if (row.gone !== true) continue;
    const queue = String(row.queue);
    const ids = gone.get(queue) ?? [];
    if (ids.at(-1) !== Number(row.job_id)) ids.push(Number(row.job_id));
    gone.set(queue, ids);
  }
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return {
    gone,
    last: last && { jobId: Number(last.job_id), queue: String(last.queue), name: String(last.name) },
  };
}

/** @crossesQueues looks by their ids whether jobs of any queue are still there */
export function findLeftRowsQuery(
  tables: TablesOfWorkflows,
  which: WorkflowTable,
  after: PlaceOfRow | undefined,
  limit: number,
): SQL {
  const { queueJobs, queueResults } = tables;
  const { jobId, queue, name } = after ?? { jobId: 0, queue: '', name: '' };
  return sql`
    with slice as materialized (
      select w.job_id, w.queue, w.name from ${tables[which]} as w
      where (w.job_id, w.queue, w.name) > (${jobId}::int8, ${queue}::text, ${name}::text)
      order by w.job_id, w.queue, w.name limit ${limit}::int4
    )
    select s.job_id, s.queue, s.name,
      not exists (select from ${queueJobs} as j where j.id = s.job_id and j.queue = s.queue)
        and not exists (select from ${queueResults} as r where r.job_id = s.job_id and r.queue = s.queue)
        as gone
    from slice as s order by s.job_id, s.queue, s.name`;
}
