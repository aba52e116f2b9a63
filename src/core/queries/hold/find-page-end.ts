import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

/** How many jobs a page of {@link findPageEnd} has: read in some tens of milliseconds. */
const PAGE_SIZE = 50_000;

/**
 * The last id of the page of jobs behind an id, over all queues: a page of one queue could be as long as the
 * table. `undefined` where fewer are left.
 *
 * **Under concurrency.** A plain read: a job that is committed later may have an id of an earlier page.
 */
export async function findPageEnd(
  db: Runner,
  tables: QueueTables,
  after: number,
): Promise<number | undefined> {
  const [row] = await queryRows(db, tables, findPageEndQuery(tables, after));
  return row === undefined ? undefined : Number(row.id);
}

/** @crossesQueues how far a page over all queues reaches */
export function findPageEndQuery({ queueJobs }: QueueTables, after: number): SQL {
  return sql`
    select j.id from ${queueJobs} as j where j.id > ${after}::int8
    order by j.id offset ${PAGE_SIZE - 1} limit 1`;
}
