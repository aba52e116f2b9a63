import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

/** Removes the row of a worker that stops. The next sweep finds whatever it still held. */
export async function removeWorker(runner: Runner, tables: QueueTables, id: number): Promise<void> {
  await queryRows(runner, tables, removeWorkerQuery(tables, id));
}

export function removeWorkerQuery({ queueWorkers }: QueueTables, id: number): SQL {
  return sql`delete from ${queueWorkers} as w where w.id = ${id}`;
}
