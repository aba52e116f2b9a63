import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../../core/sql/executor.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

/**
 * Lets the jobs of a group go on that a discarded one has stopped; returns whether it had. The discarded job
 * stays as it is.
 *
 * **Under concurrency.** Takes effect at the caller's commit. Two calls for one group wait for each other;
 * the second one finds nothing. No claim waits for it.
 */
export async function unblockGroup(
  db: Executor,
  tables: GroupTables,
  queue: string,
  group: string,
): Promise<boolean> {
  const query = unblockGroupQuery(tables, queue, group);
  return (await queryLimitRows(db, tables, query)).length > 0;
}

export function unblockGroupQuery(
  { queueHolds, queueNotes }: GroupTables,
  queue: string,
  group: string,
): SQL {
  return sql`
    with unblocked as (
      delete from ${queueHolds} as h
      where h.queue = ${queue} and h.group_key = ${group} and h.until = 'infinity'
        and h.worker_id is null
      returning h.job_id
    )
    insert into ${queueNotes} (queue, due_at, group_keys)
    select ${queue}::text, statement_timestamp(), array[${group}::text]
    where exists (select job_id from unblocked)
    returning id`;
}
