import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';

/** Adds a worker; returns its id. Ids come from a sequence, so no two workers ever share one. */
export async function registerWorker(
  db: Executor,
  tables: QueueTables,
  worker: { readonly name: string; readonly queues: readonly string[] },
): Promise<number> {
  const [row] = await queryRows(db, tables, registerWorkerQuery(tables, worker));
  return Number(row?.id);
}

export function registerWorkerQuery(
  { queueWorkers }: QueueTables,
  { name, queues }: { readonly name: string; readonly queues: readonly string[] },
): SQL {
  return sql`
    insert into ${queueWorkers} (name, queues) values (${name}, ${JSON.stringify(queues)}::text::jsonb)
    returning id`;
}
