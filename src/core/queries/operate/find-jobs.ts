import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { type JobRecord, liveRecords, resultRecords, toJobRecord } from '../../sql/job-record.ts';

/** A job whose row cannot be decoded: a column type of the app has thrown. */
export class UnreadableJob {
  constructor(
    readonly id: number,
    readonly error: unknown,
  ) {}
}

/**
 * Jobs by their ids, live or finished, in no order. Missing ones are neither.
 *
 * **Under concurrency.** One snapshot, as with `findJob`: a job that is just finishing, or being redriven, is
 * found once.
 */
export async function findJobs(
  db: Executor,
  tables: QueueTables,
  ids: readonly number[],
): Promise<(JobRecord | UnreadableJob)[]> {
  const rows = await queryRows(db, tables, findJobsQuery(tables, ids));
  const own = ownColumnsOf(tables.queueJobs);
  return rows.map((row) => {
    try {
      return toJobRecord(row, own);
    } catch (error) {
      return new UnreadableJob(Number(row.id), error);
    }
  });
}

/** @crossesQueues finds jobs by their ids: the caller does not know the queues */
export function findJobsQuery(tables: QueueTables, ids: readonly number[]): SQL {
  const asked = sql`any(array(select unnest(${arrayText(ids)}::text::int8[])))`;
  return sql`
    ${liveRecords(tables, sql`j.id = ${asked}`)}
    union all ${resultRecords(tables, sql`r.job_id = ${asked}`)}`;
}
