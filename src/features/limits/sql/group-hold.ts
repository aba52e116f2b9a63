import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';

/** Whether nobody alive holds the job `j`: it may be claimed if it is due. */
export function isFree({ queueWorkers }: QueueTables): SQL {
  return sql`(j.worker_id is null or j.worker_id not in (select w.id from ${queueWorkers} as w))`;
}

/** Whether the row `h` of `queue_holds` counts: no worker stands behind it, or one that lives. */
export function isUpheld({ queueWorkers }: QueueTables): SQL {
  return sql`(h.worker_id is null or h.worker_id in (select w.id from ${queueWorkers} as w))`;
}
