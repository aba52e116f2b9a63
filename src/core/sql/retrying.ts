import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';

/** That a live job `j` has failed and waits for its next attempt, due or not. */
export const isRetrying: SQL = sql.raw(
  "(j.errors <> '[]'::jsonb and j.attempt > 0 and j.worker_id is null and j.run_at < 'infinity')",
);

/** Live jobs `j` that have failed, as an index has them, for a `FROM`. */
export function failedJobs({ queueJobs }: QueueTables, limit: number): SQL {
  return sql`(
          select j.* from ${queueJobs} as j where j.errors <> '[]'::jsonb limit ${limit}
        )`;
}
