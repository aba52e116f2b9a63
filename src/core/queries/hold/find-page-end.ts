import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { isDistributed } from '../../sql/statement-context.ts';

/** How many jobs a page of {@link findPageEnd} has: read in some tens of milliseconds. */
const PAGE_SIZE = 50_000;

/**
 * The last id of the page of jobs behind an id, over all queues: a page of one queue could be as long as the
 * table. On Citus it is of the queue alone: otherwise each shard would send the ids of a whole page.
 * `undefined` where fewer are left.
 *
 * **Under concurrency.** A plain read: a job that is committed later may have an id of an earlier page.
 */
export async function findPageEnd(
  db: Runner,
  tables: QueueTables,
  page: { readonly queue: string; readonly after: number },
): Promise<number | undefined> {
  const [row] = await queryRows(db, tables, findPageEndQuery(tables, page));
  return row === undefined ? undefined : Number(row.id);
}

/** @crossesQueues how far a page over all queues reaches */
export function findPageEndQuery(
  tables: QueueTables,
  { queue, after }: { readonly queue: string; readonly after: number },
): SQL {
  const ofQueue = isDistributed(tables) ? sql`j.queue = ${queue} and ` : sql``;
  return sql`
    select j.id from ${tables.queueJobs} as j where ${ofQueue}j.id > ${after}::int8
    order by j.id offset ${PAGE_SIZE - 1} limit 1`;
}
