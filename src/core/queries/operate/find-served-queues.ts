import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

/** The queues that living workers serve. A plain read. */
export async function findServedQueues(db: Executor, tables: QueueTables): Promise<string[]> {
  const rows = await queryRows(db, tables, findServedQueuesQuery(tables));
  return rows.map(({ queue }) => String(queue));
}

export function findServedQueuesQuery({ queueWorkers }: QueueTables): SQL {
  return sql`
    select distinct q.name as queue
    from ${queueWorkers} as w cross join lateral jsonb_array_elements_text(w.queues) as q(name)
    order by q.name limit 1000`;
}
