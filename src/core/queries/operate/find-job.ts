import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { type JobRecord, liveRecords, resultRecords, toJobRecord } from '../../sql/job-record.ts';

/**
 * One job by id, live or finished; `undefined` when there is neither a job nor a kept result.
 *
 * **Under concurrency.** One snapshot: a job that is just finishing is found once, live or finished.
 *
 * Not `findJobs` of one: `id = any(…)` is planned as a scan of all rows where the table is empty, and drivers
 * keep such a plan. Before the first `analyze` of 100,000 rows it starts parallel workers.
 *
 * @param own which columns of the app to decode; none, and a row that cannot be decoded is found all the same
 */
export async function findJob(
  db: Executor,
  tables: QueueTables,
  id: number,
  own = ownColumnsOf(tables.queueJobs),
): Promise<JobRecord | undefined> {
  const [row] = await queryRows(db, tables, findJobQuery(tables, id));
  return row === undefined ? undefined : toJobRecord(row, own);
}

/** @crossesQueues finds a job by its id: the caller does not know the queue */
export function findJobQuery(tables: QueueTables, id: number): SQL {
  return sql`
    ${liveRecords(tables, sql`j.id = ${id}`)}
    union all ${resultRecords(tables, sql`r.job_id = ${id}`)}`;
}
