import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

/**
 * The largest id of all live jobs, or of all results; 0 where there are none. The primary key has it.
 *
 * **Under concurrency.** A plain read. A transaction that is still open may add a job with a smaller id.
 */
export async function findLastId(db: Executor, tables: QueueTables, of: 'live' | 'results'): Promise<number> {
  const [row] = await queryRows(db, tables, findLastIdQuery(tables, of));
  return Number(row?.last);
}

/** @crossesQueues (live) the ids of all queues come from one sequence */
export function findLastIdQuery({ queueJobs, queueResults }: QueueTables, of: 'live' | 'results'): SQL {
  return of === 'live'
    ? sql`select coalesce(max(j.id), 0)::float8 as last from ${queueJobs} as j`
    : sql`select coalesce(max(r.job_id), 0)::float8 as last from ${queueResults} as r`;
}
