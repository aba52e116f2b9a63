import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';
import { plainJobs } from './adopt-jobs.ts';

/**
 * The ids of the jobs that `adoptJobs` puts into the group.
 *
 * **Under concurrency.** A plain read: what it finds may be locked, or gone by then.
 */
export async function findPlainJobs(db: Runner, tables: GroupTables, queue: string): Promise<number[]> {
  const rows = await queryLimitRows(db, tables, findPlainJobsQuery(tables, queue));
  return rows.map(({ id }) => Number(id));
}

export function findPlainJobsQuery(tables: GroupTables, queue: string): SQL {
  return plainJobs(tables, queue, sql``);
}
