import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { jobsOfGroup } from '../../sql/found-by-index.ts';

/**
 * How many live jobs a group has in all queues together, counted up to `most`.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countOfGroup(
  db: Executor,
  tables: QueueTables,
  counting: { readonly group: string; readonly most: number },
): Promise<number> {
  const [row] = await queryRows(db, tables, countOfGroupQuery(tables, counting));
  return Number(row?.jobs);
}

/**
 * @crossesQueues counts the jobs of a group in every queue
 * @insteadOnCitus browseJobsQuery
 */
export function countOfGroupQuery(
  tables: QueueTables,
  { group, most }: { readonly group: string; readonly most: number },
): SQL {
  const jobs = jobsOfGroup(tables, group, { columns: sql`j.queue`, limit: most });
  return sql`select count(*)::float8 as jobs from ${jobs} as j`;
}
