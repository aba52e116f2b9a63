import { sql } from 'drizzle-orm';

/**
 * Whether a job `j` is parked until batches end, or until its deadline. See `blockers` in `queue_jobs`.
 */
export const isParked = sql.raw(`j.worker_id is null and j.blockers <> 0
        and j.run_at > statement_timestamp()`);
