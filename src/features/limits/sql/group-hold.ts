import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';

/** Whether the row `h` of `queue_holds` counts: no worker stands behind it, or one that lives. */
export function isUpheld({ queueWorkers }: QueueTables): SQL {
  return sql`(h.worker_id is null or h.worker_id in (select w.id from ${queueWorkers} as w))`;
}
