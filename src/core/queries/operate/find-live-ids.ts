import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';

/**
 * Which of these jobs are still live. One row comes back, however many there are: this is asked again and
 * again for jobs of which most have not ended since.
 *
 * **Under concurrency.** A plain read. A job that is not among them has ended, or is not there yet: its
 * transaction is still open.
 */
export async function findLiveIds(
  db: Executor,
  tables: QueueTables,
  ids: readonly number[],
): Promise<Set<number>> {
  const [row] = await queryRows(db, tables, findLiveIdsQuery(tables, ids));
  // Without a row there is no array; otherwise the statement makes one of numbers.
  return new Set(Array.isArray(row?.ids) ? row.ids.map(Number) : []);
}

/**
 * The planner does not know how long the array is, and stays on the primary key.
 *
 * @crossesQueues finds jobs by their ids: the caller does not know the queues
 */
export function findLiveIdsQuery({ queueJobs }: QueueTables, ids: readonly number[]): SQL {
  return sql`
    select coalesce(jsonb_agg(j.id), '[]') as ids from ${queueJobs} as j
    where j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))`;
}
