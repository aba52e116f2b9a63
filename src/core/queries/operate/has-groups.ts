import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

/** Whether any job of a queue is in a group. A plain read of one row of the index. */
export async function hasGroups(db: Executor, tables: QueueTables, queue: string): Promise<boolean> {
  const [row] = await queryRows(db, tables, hasGroupsQuery(tables, queue));
  return row?.grouped === true;
}

export function hasGroupsQuery({ queueJobs }: QueueTables, queue: string): SQL {
  return sql`
    select exists (
      select from ${queueJobs} as j where j.queue = ${queue} and j.group_key is not null
    ) as grouped`;
}
