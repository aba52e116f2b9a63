import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/index.ts';
import type { Executor } from '../../../index.ts';
import { queryRows } from '../../../internal.ts';
import { IMPORT_MARK } from './release-imported-jobs.ts';

export interface MarkedJob {
  readonly id: number;
  readonly queue: string;
  /** Its id in the system that it comes from. */
  readonly foreignId: string;
}

export interface FindImported {
  readonly source: string;
  /** Only jobs with greater ids. */
  readonly after: number;
  readonly limit: number;
}

/**
 * The jobs from one source that an importer which died has left marked, in the order of their ids. It reads
 * all live jobs, once per import.
 *
 * **Under concurrency.** A plain read: what it finds may be released by then, which a release notices.
 */
export async function findImportedJobs(
  db: Executor,
  tables: QueueTables,
  find: FindImported,
): Promise<MarkedJob[]> {
  const rows = await queryRows(db, tables, findImportedJobsQuery(tables, find));
  return rows.map(({ id, queue, foreign_id }) => ({
    id: Number(id),
    queue: String(queue),
    foreignId: String(foreign_id),
  }));
}

/** @crossesQueues what an import has left may be in any queue; it is slow, and runs before the next import */
export function findImportedJobsQuery(
  { queueJobs }: QueueTables,
  { source, after, limit }: FindImported,
): SQL {
  return sql`
    select j.id, j.queue, j.metadata -> ${IMPORT_MARK}::text ->> 'id' as foreign_id
    from ${queueJobs} as j
    where j.id > ${after} and j.metadata -> ${IMPORT_MARK}::text ->> 'source' = ${source}::text
    order by j.id limit ${limit}`;
}
