import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';

/** Whether no living worker holds the job `j`: it may be claimed if it is due. */
export function isFree({ queueWorkers }: QueueTables): SQL {
  return sql`(j.worker_id is null or j.worker_id not in (select w.id from ${queueWorkers} as w))`;
}
