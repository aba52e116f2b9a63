import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../sql/executor.ts';

/** Takes a worker that stops out of the living. Whatever it still held is due again for the next sweep. */
export async function removeWorker(runner: Runner, tables: QueueTables, id: number): Promise<void> {
  await queryRows(runner, tables, removeWorkerQuery(tables, id));
}

export function removeWorkerQuery({ queueWorkers }: QueueTables, id: number): SQL {
  return sql`delete from ${queueWorkers} as w where w.id = ${id}`;
}
